// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package prewarm_test

import (
	"fmt"
	"slices"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestAListReplacesThePoolsThatNoCallMade(t *testing.T) {
	h := enginetest.Start(t, t.TempDir(), func(o *engine.Options) {
		o.Pools = []prewarm.Pool{{Name: "a", Image: "python", Min: 1}, {Name: "b", Image: "python", Min: 1}}
	})
	pools := h.Engine.Pools()
	names := func() (all []string) {
		for _, p := range pools.Info() {
			all = append(all, fmt.Sprintf("%s %d %d", p.Name, p.Limits.MemoryMB, p.Min))
		}
		return all
	}
	ready := func(name string) int {
		for _, p := range pools.Info() {
			if p.Name == name {
				return p.Ready
			}
		}
		return -1
	}
	replace := func(list ...prewarm.Pool) {
		t.Helper()
		apply, err := pools.Prepare(list)
		if err != nil {
			t.Fatal(err)
		}
		apply()
	}
	is := func(says string, want ...string) {
		t.Helper()
		if got := names(); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", says, got, want)
		}
	}
	digest := func() (d string) {
		img, err := enginetest.Images{}.Find(t.Context(), "python")
		if err != nil {
			t.Fatal(err)
		}
		return img.Digest
	}()
	h.Await(t, "what they begin with", func() bool { return ready("a") == 1 && ready("b") == 1 })

	// b is removed with its sandbox, a keeps its own and grows, c is new.
	replace(prewarm.Pool{Name: "c", Image: "python", Limits: sandbox.Limits{MemoryMB: 64}, Min: 1}, prewarm.Pool{Name: "a", Image: "python", Min: 2})
	is("another list", "c 64 1", "a 512 2")
	h.Await(t, "the new list", func() bool {
		n := pools.Using(digest)
		return ready("a") == 2 && ready("c") == 1 && n["b"] == 0 && n["a"] == 2
	})

	// What a call said of one holds over any list.
	if err := pools.Change(prewarm.Pool{Name: "a", Image: "python", Min: 1, Max: 1}, nil); err != nil {
		t.Fatal(err)
	}
	replace(prewarm.Pool{Name: "a", Image: "python", Min: 7})
	is("a pool that a call changed, and one that no list has", "a 512 1")
	h.Await(t, "the sandboxes of c to go", func() bool { return pools.Using(digest)["c"] == 0 })
	replace()
	is("an empty list", "a 512 1")

	// What is wrong changes nothing.
	for field, list := range map[string][]prewarm.Pool{
		"pools":     {{Name: "x", Image: "python", Min: 2, Max: 1}},
		"memory_mb": {{Name: "x", Image: "python", Min: 1}, {Name: "y", Image: "python", Limits: sandbox.Limits{MemoryMB: 1}, Min: 1}},
	} {
		if _, err := pools.Prepare(list); fault.Of(err) != fault.Invalid || fault.As(err).Fields[0].Name != field {
			t.Errorf("got %v, want it to be about %s", err, field)
		}
	}
	if _, err := pools.Prepare([]prewarm.Pool{{Image: "python", Min: 1}, {Image: "python", Min: 2}}); fault.Of(err) != fault.Invalid {
		t.Errorf("two of one name: %v", err)
	}
	var many []prewarm.Pool
	for n := range prewarm.MaxPools {
		many = append(many, prewarm.Pool{Name: fmt.Sprint("p", n), Image: "python", Min: 1})
	}
	if _, err := pools.Prepare(many); fault.Of(err) != fault.Invalid {
		t.Errorf("too many with that of the call: %v", err)
	}
	is("what was refused", "a 512 1")
}
