// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/internal/budget"
)

// operation is one row of the table: a route with everything that follows from
// its types.
type operation struct {
	id, method, path string
	summary          string
	status           int          // of a success
	in               *binder      // what is read from the request
	out              reflect.Type // what is answered as JSON; nil: nothing
	open             bool         // needs no token
	key              *keying      // how it takes an idempotency key; nil: it takes none
	unkeyed          string       // why a POST takes none

	// For the document only.
	also     []answer // other answers that are no errors
	accepts  string   // media type of a raw body
	produces string   // media type of a raw answer
	example  any      // of the body

	serve func(*call) error
}

// answer is one more shape that an operation may answer with.
type answer struct {
	status  int
	media   string       // "": application/json
	typ     reflect.Type // nil: no body
	summary string
}

// call is one request on its way through an operation.
type call struct {
	w      http.ResponseWriter
	r      *http.Request
	caller access.Caller
	status int
	key    *keyedCall // nil: it has none
	stall  time.Duration
	room   *budget.Room // what the answer, and a large body, hold in memory
}

// op makes an operation that answers JSON, or nothing if Out is none.
func op[In, Out any](id, pattern, summary string, status int, h func(context.Context, *call, *In) (Out, error)) operation {
	o := raw(id, pattern, summary, status, func(context.Context, *call, *In) error { return nil })
	o.out = reflect.TypeFor[Out]()
	if o.out == reflect.TypeFor[none]() {
		o.out = nil
	}
	o.serve = func(c *call) error {
		in := new(In)
		if err := o.in.bind(c, reflect.ValueOf(in).Elem()); err != nil {
			return err
		}
		out, err := h(c.r.Context(), c, in)
		if err != nil {
			return err
		}
		if o.out == nil {
			c.w.WriteHeader(c.status)
			return nil
		}
		return c.json(out)
	}
	return o
}

// raw makes an operation whose handler writes the answer itself.
func raw[In any](id, pattern, summary string, status int, h func(context.Context, *call, *In) error) operation {
	method, path, _ := strings.Cut(pattern, " ")
	o := operation{id: id, method: method, path: path, summary: summary, status: status, in: newBinder(reflect.TypeFor[In]())}
	o.serve = func(c *call) error {
		in := new(In)
		if err := o.in.bind(c, reflect.ValueOf(in).Elem()); err != nil {
			return err
		}
		return h(c.r.Context(), c, in)
	}
	return o
}

// none is the output of operations that answer nothing.
type none struct{}

// The rest of a row, for the document.

func (o operation) withExample(v any) operation { o.example = v; return o }

func (o operation) withAlso(status int, media string, typ reflect.Type, summary string) operation {
	o.also = append(o.also, answer{status, media, typ, summary})
	return o
}

func (o operation) withRaw(accepts, produces string) operation {
	o.accepts, o.produces = accepts, produces
	return o
}

func (o operation) withBig() operation { o.in.maxBody = maxBigJSON; return o }

// openly has the operation need no token, if open is set.
func (o operation) openly(open bool) operation { o.open = open; return o }

func (o operation) withKey(k keying) operation { o.key = &k; return o }

func (o operation) withoutKey(why string) operation { o.unkeyed = why; return o }

// buffers are reused between requests; large ones are left to the collector.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keepBuffer = 1 << 18

func getBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= keepBuffer {
		b.Reset()
		buffers.Put(b)
	}
}

func (o operation) withOut(t reflect.Type) operation { o.out = t; return o }
