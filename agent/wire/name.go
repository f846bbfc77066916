// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"unicode/utf8"
)

// Names of files are bytes, and need not be UTF-8; strings in JSON must be. A
// byte that is no part of valid UTF-8 travels as the private character
// U+EF00 + byte (so U+EF80 to U+EFFF). The bytes of a name that really holds
// such a character travel each in the same way. Every other name is unchanged, and
// UnescapeName(EscapeName(s)) == s for every s.
const (
	escapeBase  = 0xEF00
	escapeFirst = escapeBase + 0x80
	escapeLast  = escapeBase + 0xFF
)

// EscapeName makes the Unicode form of a file name or path.
func EscapeName(s string) string {
	if plainName(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if (r == utf8.RuneError && n == 1) || (r >= escapeFirst && r <= escapeLast) {
			for _, c := range []byte(s[i : i+n]) {
				b.WriteRune(escapeBase + rune(c))
			}
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// UnescapeName gives back the bytes of what EscapeName made.
func UnescapeName(s string) string {
	if plainName(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r >= escapeFirst && r <= escapeLast {
			b.WriteByte(byte(r - escapeBase))
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

func plainName(s string) bool {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if (r == utf8.RuneError && n == 1) || (r >= escapeFirst && r <= escapeLast) {
			return false
		}
		i += n
	}
	return true
}
