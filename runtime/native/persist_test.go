// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"testing"
	"time"

	"sandpit.dev/runtime/native"
)

// A sandbox that no record mentions lost its record to a crash of the host only if it does
// not run: else it would be removed where older records were put back.
func TestWhatRunsWasInNoCrash(t *testing.T) {
	needRoot(t)
	program, err := agentProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	open := func() *native.Driver {
		t.Helper()
		d, err := native.Open(context.Background(), native.Options{Dir: dir, Agent: program})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	d := open()
	if err := d.MarkRecorded(time.Now()); err != nil {
		t.Fatal(err)
	}
	h := lasting(t, d).Handle()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	d = open()
	i, err := d.Open(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	is := func(want bool) {
		t.Helper()
		if got, err := d.Unrecorded(h.ID); err != nil || got != want {
			t.Errorf("Unrecorded = %v, %v; want %v", got, err, want)
		}
	}
	is(false)
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	is(true)
}
