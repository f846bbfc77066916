// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cleanup

import "testing"

func TestStack(t *testing.T) {
	got := ""
	add := func(s *Stack, what string) { s.Add(func() { got += what }) }

	var s Stack
	add(&s, "a")
	add(&s, "b")
	s.Run()
	s.Run()
	if got != "ba" {
		t.Errorf("Run: got %q, want the last first and each once", got)
	}

	add(&s, "c")
	s.Release()
	s.Run()
	if got != "ba" {
		t.Errorf("after Release: got %q", got)
	}
}
