// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"unicode"
	"unicode/utf8"
)

// Clip shortens s to at most n bytes for a message, on a character's border,
// and marks the cut. Messages quote what was sent; what was sent may be huge.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func printable(r rune) bool { return r != utf8.RuneError && unicode.IsPrint(r) }
