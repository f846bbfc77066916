// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package printable writes names of a file system, which are any bytes, as text that can be read back.
package printable

import (
	"strings"
	"unicode/utf8"
)

// Name returns a name as it is where it is text, and escaped else.
func Name(name string) (text string, escaped bool) {
	if utf8.ValidString(name) {
		return name, false
	}
	return Escape(name), true
}

// Escape writes each byte that is no part of a character as \xHH, and each backslash as two.
func Escape(name string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x`)
			b.WriteByte(digits[name[0]>>4])
			b.WriteByte(digits[name[0]&15])
		case r == '\\':
			b.WriteString(`\\`)
		default:
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}
