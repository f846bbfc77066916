// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// What is kept of a stream while it runs, in bytes. It is more than any answer
// holds, since control sequences are still in it.
const (
	headKept = 128 << 10
	tailKept = 512 << 10
)

// Capture keeps the beginning and the end of a stream in bounded memory. It
// belongs to one goroutine at a time.
type Capture struct {
	head, tail []byte
	Bytes      int64 // lost between them
	Lines      int64
}

// Add takes the next bytes of the stream.
func (c *Capture) Add(p []byte) {
	if n := min(headKept-len(c.head), len(p)); n > 0 {
		c.head = append(c.head, p[:n]...)
		p = p[n:]
	}
	c.tail = append(c.tail, p...)
	if len(c.tail) > 2*tailKept {
		c.drop(len(c.tail) - tailKept)
	}
}

func (c *Capture) drop(n int) {
	c.Bytes += int64(n)
	c.Lines += int64(bytes.Count(c.tail[:n], []byte{'\n'}))
	c.tail = c.tail[:copy(c.tail, c.tail[n:])]
}

// Texts returns what was kept, cleaned, as the two sides of the gap.
func (c *Capture) Texts() (head, tail string) {
	if c.Bytes == 0 {
		return Clean(append(bytes.Clone(c.head), c.tail...)), ""
	}
	h, t := c.head, c.tail
	for n := 1; n < utf8.UTFMax && n <= len(h); n++ { // the gap may go through a character
		if b := h[len(h)-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(h[len(h)-n:]) {
				h = h[:len(h)-n]
			}
			break
		}
	}
	for n := 0; n < utf8.UTFMax-1 && len(t) > 0 && !utf8.RuneStart(t[0]); n++ {
		t = t[1:]
	}
	return Clean(h), Clean(t)
}

// KeepLines drops all but the last n lines.
func (c *Capture) KeepLines(n int) {
	whole := string(c.tail)
	if c.Bytes == 0 {
		whole = string(c.head) + whole
	}
	rest := strings.TrimSuffix(whole, "\n")
	for ; n > 0; n-- {
		i := strings.LastIndexByte(rest, '\n')
		if i < 0 {
			break
		}
		rest = rest[:i]
		if n == 1 {
			whole = whole[i+1:]
		}
	}
	*c = Capture{}
	c.Add([]byte(whole))
}
