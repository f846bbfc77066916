// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package prewarm

import "slices"

// recentCreates is how many creates recentImages remembers.
const recentCreates = 8

// recentImages are the images of the last creates, which say what a pool without an image
// of its own keeps ready. It is not safe for concurrent use.
type recentImages struct{ names []string } // the latest last

func (r *recentImages) add(name string) {
	if len(r.names) == recentCreates {
		r.names = slices.Delete(r.names, 0, 1)
	}
	r.names = append(r.names, name)
}

func (r *recentImages) has(name string) bool { return slices.Contains(r.names, name) }

// next returns the image of the sandbox that is to be made next, where so many of each are
// ready: each image gets its share of the places, as the parties of an election by D'Hondt's
// method do. Of two that are due it is the one that was asked for later.
func (r *recentImages) next(ready map[string]int) string {
	asked := make(map[string]int)
	for _, name := range r.names {
		asked[name]++
	}
	var best string
	for _, name := range r.names {
		if asked[name]*(ready[best]+1) >= asked[best]*(ready[name]+1) {
			best = name
		}
	}
	return best
}
