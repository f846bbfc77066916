// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"unicode/utf8"
)

// printable returns a name of the file system as text: see [sandbox.FileEvent].
func printable(name string) (text string, escaped bool) {
	if utf8.ValidString(name) {
		return name, false
	}
	return escape(name), true
}

// escape writes a name that is not text, or one that stands beside such a one.
func escape(name string) string {
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
