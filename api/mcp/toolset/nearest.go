// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import "sandpit.dev/internal/spelling"

// NearestTool returns the tool whose name a misspelled one was meant to be, or "" if none is near.
func NearestTool(name string, tools map[string]bool) (best string) {
	least := 3 // more slips are another word
	for t := range tools {
		if d := spelling.Distance(name, t); d < least || d == least && best != "" && t < best {
			best, least = t, d
		}
	}
	return best
}
