// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"testing"

	"sandpit.dev/fault"
)

func TestTheMarkOfALayerThatIsNobodys(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		s := mustOpen(t, opts)
		marked := func(id string, want bool) {
			t.Helper()
			if got, err := s.Ahead(id); err != nil || got != want {
				t.Errorf("%s is marked: %v, %v, want %v", id, got, err, want)
			}
		}
		marked("none00000000", false)
		l, err := s.Create("box100000000", 0)
		if err != nil {
			t.Fatal(err)
		}
		marked("box100000000", false)
		if err := l.MarkAhead(); err != nil {
			t.Fatal(err)
		}
		marked("box100000000", true)
		for range 2 {
			if err := s.Claim("box100000000"); err != nil {
				t.Fatal(err)
			}
			marked("box100000000", false)
		}
		// A layer that is made of what is left of it has none.
		if err := l.MarkAhead(); err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if err := s.Remove("box100000000"); err != nil {
			t.Fatal(err)
		}
		if err := s.trash.drain(); err != nil {
			t.Fatal(err)
		}
		if l, err = s.Create("box200000000", 0); err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		marked("box200000000", false)
		if err := s.Claim("none00000000"); !fault.Is(err, fault.NotFound) {
			t.Errorf("a claim of what is not there: %v", err)
		}
	})
}
