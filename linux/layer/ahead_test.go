// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheMarkOfALayerThatIsNobodys(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		s := mustOpen(t, opts)
		unrecorded := func(id string, want bool) {
			t.Helper()
			if got, err := s.Unrecorded(id); err != nil || got != want {
				t.Errorf("%s is unrecorded: %v, %v, want %v", id, got, err, want)
			}
		}
		unrecorded("none00000000", false)
		l, err := s.Create("box100000000", 0)
		if err != nil {
			t.Fatal(err)
		}
		unrecorded("box100000000", false)
		if err := unix.Fsetxattr(l.fd, aheadMark, nil, 0); err == unix.EOPNOTSUPP {
			t.Skip("the file system keeps no trusted attributes")
		} else if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		unrecorded("box100000000", true)
		// A layer that is made of what is left of it has none.
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
		unrecorded("box200000000", false)
	})
}
