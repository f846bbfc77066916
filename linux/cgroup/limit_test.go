// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
)

// A group that was made without limits has those that it is given later, as if it had
// been made with them.
func TestLimitOfAGroupThatWasMadeWithout(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes groups")
	d := openHost(t, Kill, Memory, PIDs)
	g := create(t, d, Limits{})
	want := Limits{MemoryBytes: 64 << 20, PIDs: 32}
	if err := g.Limit(want); err != nil {
		t.Fatal(err)
	}
	if got, err := g.Limits(); err != nil || got != want {
		t.Errorf("limits: %+v, %v; want %+v", got, err, want)
	}
	if err := g.Limit(Limits{PIDs: -1}); fault.Of(err) != fault.Invalid {
		t.Errorf("a limit that is none: %v", err)
	}
	found, err := d.Open(g.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Limit(want); fault.Of(err) != fault.State {
		t.Errorf("of a group that was found: %v", err)
	}
}
