// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package cleanup undoes the steps of an acquisition that did not come to its end.
package cleanup

import "slices"

// Stack holds what undoes the steps done so far, the last first. The zero value
// is empty and ready. It is for one goroutine.
//
//	var undo cleanup.Stack
//	defer undo.Run()
//	… undo.Add(…) after each step …
//	undo.Release() // all is well: keep everything
type Stack struct{ steps []func() }

// Add puts fn on top.
func (s *Stack) Add(fn func()) { s.steps = append(s.steps, fn) }

// Run runs what is on the stack, the last added first, and empties it.
func (s *Stack) Run() {
	for _, fn := range slices.Backward(s.steps) {
		fn()
	}
	s.steps = nil
}

// Release empties the stack without running it.
func (s *Stack) Release() { s.steps = nil }
