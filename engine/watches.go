// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"

	"sandpit.dev/fault"
)

// MaxWatches is how many watches on files a project has open at once where
// [Options] does not say. Each works for itself, however many sandboxes they are on.
const MaxWatches = 128

// watches counts the open watches on files of each project.
type watches struct {
	most int

	mu sync.Mutex
	of map[string]int
}

func newWatches(most int) *watches {
	if most <= 0 {
		most = MaxWatches
	}
	return &watches{most: most, of: make(map[string]int)}
}

// begin counts one more, or fails with fault.Exhausted.
func (w *watches) begin(project string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.of[project]; n >= w.most {
		return fault.New(fault.Exhausted, "%d watches on files of this project are open, which is the most", n).
			WithRemedy("close one, or watch a directory above, recursively")
	}
	w.of[project]++
	return nil
}

func (w *watches) end(project string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[project]--; w.of[project] == 0 {
		delete(w.of, project)
	}
}
