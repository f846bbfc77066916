// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"strings"

	"sandpit.dev/internal/spelling"
)

// suggest is an ending for a message about a name that is not known: the one of
// known that it was likely meant to be, or all of them if they are few.
func suggest(name string, known []string) string {
	best, least := "", 4 // more than three slips are another word
	if len(name) <= 64 {
		lower := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
		for _, k := range known {
			if d := spelling.Distance(lower, k); d < least && d <= (len(k)+1)/2 {
				best, least = k, d
			}
		}
	}
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
