// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"sandpit.dev/fault"
)

// Bounds of answers, in bytes of JSON.
const (
	freeAnswer = 64 << 10 // what costs nothing
	maxAnswer  = 32 << 20 // what is answered whole at most
	// answerCost is what a byte of an answer costs while it is encoded: the encoder's buffer
	// and this coat's.
	answerCost = 2
	// leastRate is how fast a client takes a large answer at least, in bytes a second.
	leastRate = 32 << 10
	// answerPiece is written at a time.
	answerPiece = 64 << 10
)

// json answers v with the call's status. A large one takes room while it is in memory.
func (c *call) json(v any) error {
	size := encodedSize(v)
	switch {
	case size > maxAnswer:
		return fault.New(fault.TooLarge, "the answer would have about %d bytes, more than %d", size, maxAnswer).
			WithRemedy("ask for fewer at a time: limit, and a cursor where there is one")
	case size > freeAnswer:
		if err := c.reserve(c.r.Context(), answerCost*size); err != nil {
			return err
		}
	}
	return c.whole(v)
}

// whole answers v, of which is known that it is not large or has its room.
func (c *call) whole(v any) error {
	return encode(v, func(body []byte) {
		c.keep(c.status, body)
		c.begin(int64(len(body)))
		c.write(body)
	})
}

// encode has fn look at v as JSON; the bytes are its own until it returns.
func encode(v any, fn func([]byte)) error {
	buf := getBuffer()
	defer putBuffer(buf)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fault.Wrap(fault.Internal, err, "the answer cannot be encoded")
	}
	fn(buf.Bytes())
	return nil
}

// reserve takes room for n bytes of the answer, or says that there is none.
func (c *call) reserve(ctx context.Context, n int64) error {
	_, err := c.room.Take(ctx, n)
	return err
}

// begin sends the head of an answer in JSON; a size below 0 is not known.
func (c *call) begin(size int64) {
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if size >= 0 {
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	c.w.WriteHeader(c.status)
}

// write writes an answer that is whole. A client that went away is told nothing.
func (c *call) write(b []byte) {
	if len(b) <= freeAnswer {
		_, _ = c.w.Write(b)
		return
	}
	w := c.paced(int64(len(b)))
	defer w.done()
	for len(b) > 0 {
		n := min(len(b), answerPiece)
		if _, err := w.Write(b[:n]); err != nil {
			return
		}
		b = b[n:]
	}
}

// paced is a writer of an answer that is held in memory meanwhile: a client has to take it at
// a least rate.
func (c *call) paced(size int64) *steadyWriter {
	wait := c.stall + time.Duration(size)*time.Second/leastRate
	return &steadyWriter{w: c.w, ctl: http.NewResponseController(c.w), wait: c.stall, until: time.Now().Add(wait)}
}

// encodedSize returns about how many bytes of JSON v is, and no fewer by much: what programs
// in sandboxes can make long, text and lists of it, is counted as it is encoded.
func encodedSize(v any) int64 { return sizeOf(reflect.ValueOf(v)) }

const sizeOfScalar = 24

func sizeOf(v reflect.Value) (n int64) {
	switch v.Kind() {
	case reflect.String:
		return textSize(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 4
		}
		return sizeOf(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return 2 + (int64(v.Len())+2)/3*4
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			n += 1 + sizeOf(v.Index(i))
		}
		return n + 2
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			n += 2 + sizeOf(it.Key()) + sizeOf(it.Value())
		}
		return n + 2
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok {
			return 40
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				n += int64(len(f.Name)) + 8 + sizeOf(v.Field(i))
			}
		}
		return n + 2
	}
	return sizeOfScalar
}

// textSize returns how many bytes a text has as JSON.
func textSize(s string) int64 {
	n := int64(len(s)) + 2
	for i := 0; i < len(s); {
		b := s[i]
		if b < utf8.RuneSelf {
			n += extra(b)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1, r == '\u2028', r == '\u2029':
			n += 6 - int64(size)
		}
		i += size
	}
	return n
}

// extra is by how many bytes an ASCII character is longer in JSON than itself.
func extra(b byte) int64 {
	switch {
	case b == '"', b == '\\', b == '\n', b == '\r', b == '\t', b == '\b', b == '\f':
		return 1
	case b < ' ':
		return 5
	}
	return 0
}
