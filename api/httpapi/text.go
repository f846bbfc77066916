// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"encoding/base64"
	"io"
	"strings"
	"unicode/utf8"
)

// Text is a member of an answer whose value is bytes that a program wrote: text, and in base64
// as well, as the member NAME_base64, where they are not UTF-8.
type Text struct {
	Name string
	Data []byte
	Cut  bool // what came behind Data was cut off
}

// EncodeText returns bytes as text, and in base64 as well where they are not UTF-8. A cut may
// go through a character: its beginning is no reason for base64, and is dropped with what was
// cut off.
func EncodeText(data []byte, cut bool) (text, exact string) {
	data = uncut(data, cut)
	if utf8.Valid(data) {
		return string(data), ""
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), base64.StdEncoding.EncodeToString(data)
}

// EncodeExact returns bytes as text if that is plain, and else in base64 alone.
func EncodeExact(data []byte) (text, exact string) {
	for _, b := range data {
		if b < ' ' && b != '\n' && b != '\t' && b != '\r' {
			return "", base64.StdEncoding.EncodeToString(data)
		}
	}
	if utf8.Valid(data) {
		return string(data), ""
	}
	return "", base64.StdEncoding.EncodeToString(data)
}

// AnswerText answers an object of JSON, which v is without its texts, with the texts behind it:
// from the very bytes that were collected, as in an answer they would take six times as many.
func (c *Call) AnswerText(v any, texts ...Text) error {
	return Encode(v, func(head []byte) { c.writeText(head, texts) })
}

func (c *Call) writeText(head []byte, texts []Text) {
	size := 0
	for i := range texts {
		texts[i].Data = uncut(texts[i].Data, texts[i].Cut)
		size += len(texts[i].Data)
	}
	c.begin(-1)
	w := c.paced(6 * int64(size))
	defer w.Close()
	t := &textWriter{w: w, buf: append(make([]byte, 0, answerPiece+utf8.UTFMax*2), bytes.TrimSuffix(head, []byte("}\n"))...)}
	for _, one := range texts {
		t.text(one.Name, one.Data)
	}
	for _, one := range texts {
		if !utf8.Valid(one.Data) {
			t.base64(one.Name+"_base64", one.Data)
		}
	}
	t.raw("}\n")
	t.flush() // what a client that went away does not take is left out
}

// textWriter writes members of a JSON object a piece at a time. What follows an error is
// left out.
type textWriter struct {
	w   io.Writer
	buf []byte
	err error
}

func (t *textWriter) flush() {
	if t.err == nil {
		_, t.err = t.w.Write(t.buf)
	}
	t.buf = t.buf[:0]
}

func (t *textWriter) raw(s string) {
	if t.buf = append(t.buf, s...); len(t.buf) >= answerPiece {
		t.flush()
	}
}

// text writes a member whose value is text: bytes that are not UTF-8 become U+FFFD, one for
// all that stand together.
func (t *textWriter) text(name string, data []byte) {
	t.raw(`,"` + name + `":"`)
	bad := false // what came last was not UTF-8
	for i := 0; i < len(data) && t.err == nil; {
		if b := data[i]; b < utf8.RuneSelf {
			t.ascii(b)
			bad = false
			i++
		} else {
			r, size := utf8.DecodeRune(data[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				if !bad {
					t.buf = append(t.buf, "\uFFFD"...)
				}
			case r == '\u2028' || r == '\u2029':
				t.buf = append(t.buf, `\u202`...)
				t.buf = append(t.buf, hex[r&0xF])
			default:
				t.buf = append(t.buf, data[i:i+size]...)
			}
			bad = r == utf8.RuneError && size == 1
			i += size
		}
		if len(t.buf) >= answerPiece {
			t.flush()
		}
	}
	t.raw(`"`)
}

const hex = "0123456789abcdef"

func (t *textWriter) ascii(b byte) {
	switch b {
	case '"', '\\':
		t.buf = append(t.buf, '\\', b)
	case '\n':
		t.buf = append(t.buf, `\n`...)
	case '\r':
		t.buf = append(t.buf, `\r`...)
	case '\t':
		t.buf = append(t.buf, `\t`...)
	default:
		if b >= ' ' {
			t.buf = append(t.buf, b)
			return
		}
		t.buf = append(t.buf, `\u00`...)
		t.buf = append(t.buf, hex[b>>4], hex[b&0xF])
	}
}

func (t *textWriter) base64(name string, data []byte) {
	t.raw(`,"` + name + `":"`)
	const piece = answerPiece / 4 * 3
	for len(data) > 0 && t.err == nil {
		n := min(len(data), piece)
		t.buf = base64.StdEncoding.AppendEncode(t.buf, data[:n])
		t.flush()
		data = data[n:]
	}
	t.raw(`"`)
}

// uncut drops the beginning of a character that a cut went through.
func uncut(data []byte, cut bool) []byte {
	if !cut {
		return data
	}
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if b := data[len(data)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-n:]) {
				return data[:len(data)-n]
			}
			break
		}
	}
	return data
}
