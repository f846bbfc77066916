// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"strings"

	"sandpit.dev/internal/spelling"
)

// nearest returns the one of known that a name was likely meant to be: it has a slip or two, or is
// short for it, as cmd is for command. Empty: none.
func nearest(name string, known []string) string {
	best, least := "", 4 // more than three slips are another word
	if len(name) > 64 {
		return ""
	}
	lower := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, k := range known {
		d := spelling.Distance(lower, k)
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

// Suggest returns an ending for a message about a name that is not known: the one of
// known that it was likely meant to be, or all of them if they are few.
func Suggest(name string, known []string) string {
	best := nearest(name, known)
	switch {
	case best != "":
		return "; did you mean " + best + "?"
	case len(known) == 0:
		return "; it has none"
	case len(known) <= 30:
		return "; there are " + strings.Join(known, ", ")
	}
	return ""
}
