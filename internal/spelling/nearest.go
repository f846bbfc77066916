// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spelling

import "strings"

// Nearest returns the one of known that a name was likely meant to be: it has a slip or two, or is
// short for it, as cmd is for command. Empty: none.
func Nearest(name string, known []string) string {
	best, least := "", 4 // more than three slips are another word
	if len(name) > 64 {
		return ""
	}
	lower := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, k := range known {
		d := Distance(lower, k)
		if d > (len(k)+1)/2 && !shortFor(lower, k) {
			continue
		}
		if shortFor(lower, k) {
			d = 0
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// shortFor reports whether name has the first and the last letter of a word, and others of it
// in their order.
func shortFor(name, word string) bool {
	if len(name) < 3 || len(name) > len(word) || name[0] != word[0] || name[len(name)-1] != word[len(word)-1] {
		return false
	}
	at := 0
	for i := range len(word) {
		if at < len(name) && name[at] == word[i] {
			at++
		}
	}
	return at == len(name)
}
