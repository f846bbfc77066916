// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/runtime/runtimetest"
)

// The fake that a thousand other tests stand on passes the suite, but for what
// its Probe says that it cannot.
func TestConformance(t *testing.T) {
	skiptest.WithShort(t, "the fake passes the suite of drivers")
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		host, err := memory.Open(t.TempDir(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := host.Close(); err != nil {
				t.Errorf("close the host: %v", err)
			}
		})
		return runtimetest.Harness{
			Open: func(*testing.T) runtime.Driver { return host.Driver() },
			Must: []runtime.Feature{runtime.Reopen, runtime.WatchFiles, runtime.Pause, runtime.Resize, runtime.Snapshots, runtime.Volumes, runtime.VolumeParts},
			Lacks: []runtime.Feature{
				runtime.Isolation, runtime.LimitCPU, runtime.LimitMemory, runtime.LimitSockets, runtime.LimitPids, runtime.LimitDisk,
				runtime.KillTree, runtime.TrackChanges, runtime.RootUser, runtime.Sudo, runtime.RootDisk, runtime.CheapSnapshots, runtime.Network,
			},
		}
	})
}
