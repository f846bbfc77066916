// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"bytes"
	"unicode/utf8"
)

// Bounds of a file in an answer.
const (
	ReadShown = 40_000  // characters of text
	MaxImage  = 1 << 20 // bytes of an image
)

// IsBinary judges by a file's beginning; more says that there is more of it, so
// that its last character may be cut.
func IsBinary(begin []byte, more bool) bool {
	if bytes.IndexByte(begin, 0) >= 0 {
		return true
	}
	for len(begin) > 0 {
		r, size := utf8.DecodeRune(begin)
		if r == utf8.RuneError && size == 1 {
			return !more || utf8.FullRune(begin)
		}
		begin = begin[size:]
	}
	return false
}

// MaxWrite bounds a file written by a tool; the message around it is bounded too.
const MaxWrite = 8 << 20
