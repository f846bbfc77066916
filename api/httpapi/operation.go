// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"reflect"
	"slices"
	"strings"
)

// Operation is one row of a coat's table: a route with everything that follows from its types.
// [Op] and [Raw] make one, and its methods return it with more.
type Operation struct {
	ID           string // in the document
	Method, Path string
	Summary      string // in the document
	Status       int    // of a success
	Extension    any    // the coat's own, for its [Options.Serve] and [Document.Parameters]

	in      *binder      // what is read from the request
	out     reflect.Type // what is answered as JSON; nil: nothing
	open    bool         // needs no token
	told    bool         // it is recorded all the same, see Recorded
	reads   bool         // content, see ReadsContent
	watched bool         // see Watched
	serve   func(*Call) error

	// For the document only.
	also     []answer // other answers that are no errors
	accepts  []string // media types of a raw body
	produces string   // media type of a raw answer
	part     string   // of a form, which may be sent instead of the raw body
	events   map[string]reflect.Type
	framed   string // the media type of frames that have events among them
	example  any    // of the body
}

// answer is one more shape that an operation may answer with.
type answer struct {
	status  int
	media   string       // "": application/json
	typ     reflect.Type // nil: no body
	summary string
}

// None is the output of operations that answer nothing.
type None struct{}

// NoInput is the input of operations that read nothing.
type NoInput struct{}

// Op returns an operation that answers JSON with what serve returns, or nothing if Out is
// [None]. The pattern is a method and a path as http.ServeMux has them.
//
// The fields of In say what is read from the request before serve is called:
//
//	`path:"id"`           the part of the path of that name; the field is a string
//	`query:"limit"`       a parameter: *string, *int, *int64, *float64, *bool or, separated
//	                      by commas or given again, []string
//	`query:"label.*"`     all parameters that begin so, also written label[NAME], as a map[string]string
//	Body                  the JSON body, a struct
//
// A tag `doc` describes a parameter in the document. What the types do not have is refused, all
// of the parameters at once and all of the body at once, with a hint at what was meant.
func Op[In, Out any](id, pattern, summary string, status int, serve func(context.Context, *Call, *In) (Out, error)) Operation {
	o := Raw[In](id, pattern, summary, status, nil)
	if t := reflect.TypeFor[Out](); t != reflect.TypeFor[None]() {
		o.out = t
	}
	o.serve = func(c *Call) error {
		in := new(In)
		if err := o.in.bind(c, reflect.ValueOf(in).Elem()); err != nil {
			return err
		}
		out, err := serve(c.R.Context(), c, in)
		if err != nil {
			return err
		}
		if o.out == nil {
			if c.Answered != nil {
				c.Answered(c.Status, nil)
			}
			c.W.WriteHeader(c.Status)
			return nil
		}
		return c.Answer(out)
	}
	return o
}

// Bounded is Op for what may take long: its context ends when the handler is closed, too, and an error says for which reason.
func Bounded[In, Out any](id, pattern, summary string, status int, serve func(context.Context, *Call, *In) (Out, error)) Operation {
	return Op(id, pattern, summary, status, func(ctx context.Context, c *Call, in *In) (Out, error) {
		ctx, end := c.Bound(ctx)
		defer end()
		out, err := serve(ctx, c, in)
		return out, Cause(ctx, err)
	})
}

// Raw returns an operation whose serve writes the answer itself. An error that it returns is
// answered; where an answer was begun already, the connection is cut.
func Raw[In any](id, pattern, summary string, status int, serve func(context.Context, *Call, *In) error) Operation {
	method, path, _ := strings.Cut(pattern, " ")
	o := Operation{ID: id, Method: method, Path: path, Summary: summary, Status: status, in: newBinder(reflect.TypeFor[In]())}
	o.serve = func(c *Call) error {
		in := new(In)
		if err := o.in.bind(c, reflect.ValueOf(in).Elem()); err != nil {
			return err
		}
		return serve(c.R.Context(), c, in)
	}
	return o
}

// Serve reads what the request of a call asks for, and answers it.
func (o *Operation) Serve(c *Call) error { return o.serve(c) }

// Open returns the operation as one that needs no token, if open is set.
func (o Operation) Open(open bool) Operation { o.open = open; return o }

// Recorded returns an operation that needs no token as one that the audit log tells of: its handler finds out who the caller
// is, see [guard.AdmitCaller].
func (o Operation) Recorded() Operation { o.told = true; return o }

// ReadsContent returns the operation as one whose answer has what is in sandboxes, or what ran in them: the audit log
// tells of it, as it does of all that are not a GET.
func (o Operation) ReadsContent() Operation { o.reads = true; return o }

// Watched returns the operation as one by which people look on, a page asking again and again: the audit log tells of it once
// a minute, as long as the same caller asks for the same.
func (o Operation) Watched() Operation { o.watched = true; return o }

// Extend returns the operation with its Extension.
func (o Operation) Extend(v any) Operation { o.Extension = v; return o }

// MaxBody returns the operation with a bound of its own, in bytes, for its body in JSON.
func (o Operation) MaxBody(n int64) Operation {
	in := *o.in
	in.maxBody = n
	o.in = &in
	return o
}

// The rest of a row is for the document.

// Example returns the operation with an example of its body.
func (o Operation) Example(v any) Operation { o.example = v; return o }

// Out returns the operation as one that answers a T as JSON, where its types do not say so.
func (o Operation) Out(t reflect.Type) Operation { o.out = t; return o }

// Also returns the operation with one more answer that is no error. The media type "" is that
// of JSON; a nil type is an answer without a body that the document describes.
func (o Operation) Also(status int, media string, t reflect.Type, summary string) Operation {
	o.also = append(o.also, answer{status, media, t, summary})
	return o
}

// Media returns the operation with the media types of its body and of its answer, where they
// are not JSON; "": they are.
func (o Operation) Media(accepts, produces string) Operation {
	o.accepts, o.produces = nil, produces
	if accepts != "" {
		o.accepts = []string{accepts}
	}
	return o
}

const formType = "multipart/form-data"

// FormPart returns the operation as one whose raw body may be a part of a form, too, with that name.
func (o Operation) FormPart(name string) Operation {
	o.accepts, o.part = append(slices.Clone(o.accepts), formType), name
	return o
}

// Events returns the operation with the types of the data of its server-sent events, by the events' names. The document
// adds the one that errors break a stream off with. What answers with them is said by [Operation.Media] or
// [Operation.Also].
func (o Operation) Events(types map[string]reflect.Type) Operation {
	o.events = types
	return o
}

// Frames returns the operation as one that answers with frames of a media type, too, which have its events among them.
func (o Operation) Frames(media string) Operation {
	o.framed = media
	return o.Also(o.Status, media, nil, "")
}
