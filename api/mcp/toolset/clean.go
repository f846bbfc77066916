// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"strings"
	"unicode/utf8"
)

// Clean makes text for a model of what a program wrote for a terminal: without
// control sequences, a progress bar as it stood last, and valid UTF-8.
func Clean(raw []byte) string {
	s := strings.ToValidUTF8(string(raw), "\uFFFD")
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 }) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for line := range strings.Lines(s) {
		body, end := strings.CutSuffix(line, "\n")
		body = lastState(strings.TrimRight(plain(body), "\r"))
		b.WriteString(body)
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// lastState returns what stands on a line that was written over by carriage
// returns: its last state.
func lastState(line string) string {
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		return line[i+1:]
	}
	return line
}

// plain takes control sequences and control characters off a line, but for tabs
// and carriage returns.
func plain(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == 0x1b:
			i += sequence(s[i:])
		case c == '\t' || c == '\r' || c >= ' ' && c < 0x7f:
			b.WriteByte(c)
			i++
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r >= 0xa0 {
				b.WriteString(s[i : i+size])
			}
			i += size
		}
	}
	return b.String()
}

// sequence returns the length of the escape sequence that s begins with.
func sequence(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[': // to a letter or another final byte
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case ']', 'P', '_', '^', 'X': // to a bell or a string terminator
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b {
				if i+1 < len(s) && s[i+1] == '\\' {
					return i + 2
				}
				return i
			}
		}
		return 2 // it never ends: what follows is text
	case '(', ')', '*', '+', '#', '%', ' ':
		return min(3, len(s))
	}
	if s[1] < utf8.RuneSelf {
		return 2
	}
	return 1
}
