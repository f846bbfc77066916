// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// What an operator bounds, no verb goes past; what was made before stays as it is.
func TestNoSandboxGetsMoreThanTheOperatorAllows(t *testing.T) {
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "old", Limits: sandbox.Limits{CPU: 4, MemoryMB: 4096}})
	if _, err := h.engine.CreateSnapshot(t.Context(), alice, "old", engine.SnapshotRequest{Name: "old"}); err != nil {
		t.Fatal(err)
	}
	h.restart(func(o *engine.Options) { o.Defaults.Most = sandbox.Limits{CPU: 2, MemoryMB: 2048} })
	refused := func(err error, words ...string) {
		t.Helper()
		if !fault.Is(err, fault.Invalid) {
			t.Fatalf("got %v, want it invalid", err)
		}
		for _, f := range fault.As(err).Fields {
			if f.Name == words[0] {
				for _, w := range words[1:] {
					if !strings.Contains(f.Message, w) {
						t.Errorf("%s: %q does not say %q", f.Name, f.Message, w)
					}
				}
				return
			}
		}
		t.Errorf("no field %s in %v", words[0], err)
	}
	create := func(r engine.CreateRequest) error {
		_, _, err := h.engine.Create(t.Context(), alice, r)
		return err
	}
	refused(create(engine.CreateRequest{Limits: sandbox.Limits{MemoryMB: 2049}}), "memory_mb", "2049", "2048")
	refused(create(engine.CreateRequest{Limits: sandbox.Limits{CPU: 2.5}}), "cpu_cores", "2.5", "2 cores")
	refused(create(engine.CreateRequest{From: "old/old"}), "memory_mb", "4096", "2048")
	if err := create(engine.CreateRequest{Key: "new", From: "old/old", Limits: sandbox.Limits{CPU: 2, MemoryMB: 2048}}); err != nil {
		t.Errorf("the most that there is: %v", err)
	}
	_, err := h.engine.Update(t.Context(), alice, "new", update.Patch{CPU: ptr(3.0)})
	refused(err, "cpu_cores", "3", "2 cores")
	_, err = h.engine.Fork(t.Context(), alice, "old", engine.ForkRequest{})
	refused(err, "memory_mb", "4096", "2048")
	// It can be made to fit, one limit at a time.
	for _, p := range []update.Patch{{CPU: ptr(1.0)}, {MemoryMB: ptr(512)}} {
		if _, err := h.engine.Update(t.Context(), alice, "old", p); err != nil {
			t.Errorf("less of one limit: %v", err)
		}
	}
	if _, err := h.engine.Fork(t.Context(), alice, "old", engine.ForkRequest{}); err != nil {
		t.Errorf("a fork of what fits: %v", err)
	}
	i, err := h.engine.Info(t.Context(), alice)
	if err != nil {
		t.Fatal(err)
	}
	if m := i.Defaults.Most; m.CPU != 2 || m.MemoryMB != 2048 || m.Pids != sandbox.MaxPids {
		t.Errorf("it tells the most as %+v", m)
	}
}
