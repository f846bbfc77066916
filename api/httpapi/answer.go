// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"sandpit.dev/fault"
)

// Bounds of answers, in bytes of JSON.
const (
	// FreeAnswer is the size up to which an answer takes no room.
	FreeAnswer = 64 << 10
	maxAnswer  = 32 << 20 // what is answered whole at most
	// answerCost is what a byte of an answer costs while it is encoded: the encoder's buffer
	// and this package's.
	answerCost = 2
	// leastRate is how fast a client takes a large answer at least, in bytes a second.
	leastRate = 32 << 10
	// answerPiece is written at a time.
	answerPiece = 64 << 10
)

// Answer answers v as JSON with the call's status. A large one takes room while it is in memory.
func (c *Call) Answer(v any) error {
	size := encodedSize(v)
	switch {
	case size > maxAnswer:
		return fault.New(fault.TooLarge, "the answer would have about %d bytes, more than %d", size, maxAnswer).
			WithRemedy("ask for fewer at a time: limit, and a cursor where there is one")
	case size > FreeAnswer:
		if err := c.Reserve(c.R.Context(), answerCost*size); err != nil {
			return err
		}
	}
	return c.AnswerHeld(v)
}

// AnswerHeld answers v, which is known not to be large or has its room already.
func (c *Call) AnswerHeld(v any) error {
	return Encode(v, func(body []byte) {
		if c.Answered != nil {
			c.Answered(c.Status, body)
		}
		c.Send(body)
	})
}

// Send answers JSON that is encoded already, with the call's status.
func (c *Call) Send(body []byte) {
	c.begin(int64(len(body)))
	c.write(body)
}

// Encode calls fn with v as JSON; the bytes are its own until it returns.
func Encode(v any, fn func([]byte)) error {
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

// begin sends the head of an answer in JSON; a size below 0 is not known.
func (c *Call) begin(size int64) {
	h := c.W.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if size >= 0 {
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	c.W.WriteHeader(c.Status)
}

// write writes an answer that is whole. What a client that went away does not take is left out.
func (c *Call) write(b []byte) {
	if len(b) <= FreeAnswer {
		_, _ = c.W.Write(b)
		return
	}
	w := c.paced(int64(len(b)))
	defer w.Close()
	for len(b) > 0 {
		n := min(len(b), answerPiece)
		if _, err := w.Write(b[:n]); err != nil {
			return
		}
		b = b[n:]
	}
}

// encodedSize returns about how many bytes of JSON v is, and no fewer by much: what programs
// in sandboxes can make long, text and lists of it, is counted as it is encoded.
func encodedSize(v any) int64 { return sizeOf(reflect.ValueOf(v)) }

const sizeOfScalar = 24

// textMap is the maps of which a look at each text by reflection would allocate it.
var textMap = reflect.TypeFor[map[string]string]()

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
		if v.CanConvert(textMap) {
			for name, text := range v.Convert(textMap).Interface().(map[string]string) {
				n += 2 + textSize(name) + textSize(text)
			}
			return n + 2
		}
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

// extra returns by how many bytes an ASCII character is longer in JSON than itself.
func extra(b byte) int64 {
	switch {
	case b == '"', b == '\\', b == '\n', b == '\r', b == '\t', b == '\b', b == '\f':
		return 1
	case b < ' ':
		return 5
	}
	return 0
}
