// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/runtimetest"
)

// onGVisor is of pods whose runtime class is gVisor's.
func onGVisor(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := options(t, c)
	o.RuntimeClass, o.ProveEvery = cluster.GVisorClass, 1<<40
	s := serve(t, c, image, o)
	i := s.create(s.spec())
	if got := run(t, i, "", "uname -r"); !strings.HasSuffix(got, "-gvisor") {
		t.Errorf("it runs on %q", got)
	}
	if _, err := i.(runtime.Networker).Steer(t.Context()); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "network stack of their own") {
		t.Errorf("Steer: %v", err)
	}
	t.Run("Conformance", func(t *testing.T) {
		runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
			o := options(t, c)
			o.RuntimeClass = cluster.GVisorClass
			return runtimetest.Harness{
				Image: image,
				Open:  func(t *testing.T) runtime.Driver { return open(t, o) },
				Must:  []runtime.Feature{runtime.LimitCPU, runtime.KillTree, runtime.RootUser, runtime.Reopen, runtime.TrackChanges, runtime.WatchFiles, runtime.Snapshots},
				Disk:  []string{"/workspace", "/home", "/artifacts"}, Sizes: true,
			}
		}, "Meter", "Limits", "Resize", "Snapshots", "Network", "Changes", "Watches") // docs/kubernetes.md says what of these is otherwise there
	})
}
