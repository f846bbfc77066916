// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
)

func TestOneProcessHasSoManyFollowers(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{})
	start := func() string {
		p, err := h.engine.StartProcess(t.Context(), alice, string(s.ID), engine.StartRequest{Argv: []string{"sleep", "600"}})
		if err != nil {
			t.Fatal(err)
		}
		return p.ID
	}
	follow := func(process string) (*engine.Following, error) {
		return h.engine.Follow(t.Context(), alice, string(s.ID), process, engine.FollowRequest{})
	}
	process, other := start(), start()
	var all []*engine.Following
	for range engine.MaxFollowers {
		g, err := follow(process)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	for range 2 {
		_, err := follow(process)
		if f := fault.As(err); f.Code != fault.Exhausted || f.Retry <= 0 || f.Remedy == "" {
			t.Errorf("one more: got %+v", f)
		}
	}
	if g, err := follow(other); err != nil {
		t.Errorf("another process: %v", err)
	} else {
		g.Close()
	}
	all[0].Close()
	// A following that does not come about counts no longer either.
	for range 2 * engine.MaxFollowers {
		if _, err := h.engine.Follow(t.Context(), alice, string(s.ID), process, engine.FollowRequest{Cursor: 1 << 40}); !fault.Is(err, fault.Invalid) {
			t.Fatalf("a cursor that no frame had: %v", err)
		}
	}
	g, err := follow(process)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range append(all[1:], g) {
		g.Close()
	}
}
