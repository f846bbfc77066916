// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"strings"

	"sandpit.dev/internal/spelling"
)

// Suggest returns an ending for a message about a name that is not known: the one of
// known that it was likely meant to be, or all of them if they are few.
func Suggest(name string, known []string) string {
	best := spelling.Nearest(name, known)
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
