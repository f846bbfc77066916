// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"os"
	"testing"
	"time"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// What a sandbox holds in the server is all that keeps a server from having thousands: its
// process's descriptor, and its overlay's.
func TestASandboxThatRunsHoldsTwoDescriptors(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	d := open(t, t.TempDir(), "")
	t.Cleanup(func() { _ = d.Close() })
	add := func(n int) {
		for range n {
			i, err := d.Create(t.Context(), runtime.Spec{
				ID: sandbox.NewID(), Image: runtime.Image{Root: root}, Hostname: "box",
				Limits: sandbox.Limits{CPU: 1, MemoryMB: 128, DiskMB: 128, Pids: 64},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := i.Remove(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	add(1)
	before := steadyDescriptors(t)
	const n = 10
	add(n)
	if grew := steadyDescriptors(t) - before; grew > 2*n {
		t.Errorf("the server holds %d descriptors more for %d sandboxes", grew, n)
	}
}

// steadyDescriptors counts this process's descriptors once what is let go of behind a create,
// and made ahead for the next one and for the next call, is done with.
func steadyDescriptors(t *testing.T) int {
	t.Helper()
	count := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(open)
	}
	n, since := count(), time.Now()
	for began := since; time.Since(since) < native.LineFor+time.Second && time.Since(began) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
		if now := count(); now != n {
			n, since = now, time.Now()
		}
	}
	return n
}
