// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"slices"

	"sandpit.dev/runtime"
)

// wantedMemory is how many creates are remembered.
const wantedMemory = 8

// wanted knows what was asked for of late. It is not safe for concurrent use.
type wanted struct{ specs []runtime.Spec } // the latest last

func (w *wanted) add(spec runtime.Spec) {
	if len(w.specs) == wantedMemory {
		w.specs = slices.Delete(w.specs, 0, 1)
	}
	w.specs = append(w.specs, spec)
}

// most gives what to be ready for: the image that was asked for most, with what was asked
// for beside it last. Of two that are asked for as much it is the later one.
func (w *wanted) most() (runtime.Spec, bool) {
	var best runtime.Spec
	count := make(map[string]int, len(w.specs))
	for _, spec := range w.specs {
		if count[spec.Image.Root]++; count[spec.Image.Root] >= count[best.Image.Root] {
			best = spec
		}
	}
	return best, len(w.specs) > 0
}

// forget forgets an image that cannot be had any more.
func (w *wanted) forget(root string) {
	w.specs = slices.DeleteFunc(w.specs, func(s runtime.Spec) bool { return s.Image.Root == root })
}

// has tells whether an image was asked for.
func (w *wanted) has(root string) bool {
	return slices.ContainsFunc(w.specs, func(s runtime.Spec) bool { return s.Image.Root == root })
}
