// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/base64"
	"io"
	"unicode/utf8"
)

// outputs are a command's streams as it wrote them, and whether they were cut off.
type outputs struct {
	stdout, stderr       []byte
	stdoutCut, stderrCut bool
}

// small reports whether the outputs may be copied for an answer that is built whole.
func (o *outputs) small() bool { return len(o.stdout)+len(o.stderr) <= freeAnswer }

// withOutput answers an object of JSON, which v is without its output, with the output added:
// from the very bytes that were collected, as in an answer they would take six times as many.
func (c *call) withOutput(v any, o outputs) error {
	return encode(v, func(head []byte) { c.writeOutput(head, o) })
}

func (c *call) writeOutput(head []byte, o outputs) {
	c.begin(-1)
	w := c.paced(6 * int64(len(o.stdout)+len(o.stderr)))
	defer w.done()
	t := &textWriter{w: w, buf: append(make([]byte, 0, answerPiece+utf8.UTFMax*2), bytes.TrimSuffix(head, []byte("}\n"))...)}
	stdout, stderr := uncut(o.stdout, o.stdoutCut), uncut(o.stderr, o.stderrCut)
	t.text("stdout", stdout)
	t.text("stderr", stderr)
	if !utf8.Valid(stdout) {
		t.base64("stdout_base64", stdout)
	}
	if !utf8.Valid(stderr) {
		t.base64("stderr_base64", stderr)
	}
	t.raw("}\n")
	t.flush() // the client went away: nothing to tell
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

// text writes a member whose value is text: bytes that are no UTF-8 become U+FFFD, one for
// all that stand together.
func (t *textWriter) text(name string, data []byte) {
	t.raw(`,"` + name + `":"`)
	bad := false // what came last was no UTF-8
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
