// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"os"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/runtimetest"
	"sandpit.dev/sandbox"
)

// An Engine that is not root: it, and the root of its containers, is nobody on the host. Where control groups are of version 1 it has none.
func TestRootless(t *testing.T) {
	skiptest.WithShort(t, "an Engine makes containers")
	h := dockerdtest.NewRootless(t)
	image := lendPython(t, h)
	t.Run("WhatItHasNoGroupsFor", func(t *testing.T) { withoutGroups(t, newPlace(t, h)) })
	without := []string{"Meter", "Pause", "Resize", "Snapshots", "Lifecycle", "Network", "Volumes", "Changes", "Watches", "Concurrency"}
	if os.Getenv("SANDPIT_SOAK") == "1" {
		without = without[:4] // nothing is counted, frozen or resized there, see withoutGroups
	}
	t.Run("Conformance", func(t *testing.T) {
		runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
			dir, namespace := t.TempDir(), newNamespace()
			return runtimetest.Harness{
				Image: image, Coarse: coarse,
				Open:  func(t *testing.T) runtime.Driver { return open(t, h, dir, namespace) },
				Must:  []runtime.Feature{runtime.KillTree, runtime.RootUser, runtime.Reopen, runtime.Network, runtime.Volumes, runtime.TrackChanges, runtime.WatchFiles},
				Lacks: lacks(), Tried: tried(), Otherwise: otherwiseWhereMapped(),
			}
		}, without...)
	})
}

// Podman as a user starts it.
func TestSoakRootlessPodman(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to run the suite with a Podman that is not root")
	}
	h := dockerdtest.NewRootlessPodman(t)
	image := lendPython(t, h)
	t.Run("WhatItHasNoGroupsFor", func(t *testing.T) { withoutGroups(t, newPlace(t, h)) })
	t.Run("Conformance", func(t *testing.T) {
		runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
			dir, namespace := t.TempDir(), newNamespace()
			return runtimetest.Harness{
				Image: image, Coarse: coarse,
				Open:  func(t *testing.T) runtime.Driver { return open(t, h, dir, namespace) },
				Must:  []runtime.Feature{runtime.KillTree, runtime.RootUser, runtime.Reopen, runtime.Network, runtime.Volumes, runtime.TrackChanges, runtime.WatchFiles},
				Lacks: lacks(), Tried: tried(), Otherwise: otherwiseOfPodman(),
			}
		}, "Meter", "Pause", "Resize", "Snapshots", "Concurrency") // of many that end at once Podman 5.4 cannot remove one now and then: see CleansUp
	})
}

// withoutGroups: what needs control groups is refused where there are none, with the reason, and all else works.
func withoutGroups(t *testing.T, p *place) {
	ctx := t.Context()
	info, err := p.engine.Info(ctx)
	p.must(err)
	if info.CgroupVersion == "2" {
		t.Skip("this host gives an Engine that is not root control groups (version 2)")
	}
	can, err := p.driver.Probe(ctx)
	p.must(err)
	for _, f := range []runtime.Feature{runtime.LimitCPU, runtime.LimitMemory, runtime.LimitPids, runtime.Pause, runtime.Resize, runtime.Snapshots} {
		if !fault.Is(can[f], fault.Unsupported) {
			t.Errorf("Probe says of %s: %v", f, can[f])
		}
	}
	i, spec, id := p.create()
	c, err := p.engine.InspectContainer(ctx, id)
	p.must(err)
	for _, m := range c.Mounts {
		if m.Type == "bind" {
			t.Errorf("%s of the host is mounted, which this Engine cannot enter", m.Source)
		}
	}
	if got := p.run(i, agent.Command{Shell: "echo kept > file; read inside outside count < /proc/self/uid_map; echo $inside $outside"}); !strings.HasPrefix(got, "0 ") || got == "0 0\n" {
		t.Errorf("the users of its container are mapped as %q", got)
	}
	limits := spec.Limits
	limits.CPU = 2
	for name, err := range map[string]error{
		"Pause": i.(runtime.Pauser).Pause(ctx), "Resize": i.(runtime.Resizer).Resize(ctx, limits),
		"Snapshot": func() error { _, err := p.driver.Snapshot(ctx, spec.ID, sandbox.NewID()); return err }(),
	} {
		if !fault.Is(err, fault.Unsupported) || fault.As(err).Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if images := p.images(); len(images) > 0 {
		t.Errorf("left are the images %v", images)
	}
	use, err := i.(runtime.Meter).Use(ctx)
	if p.must(err); use.MemoryBytes != -1 || use.Tasks != -1 || use.CPU >= 0 {
		t.Errorf("it is said to use %+v", use)
	}
	p.run(i, agent.Command{Shell: ":"})
	// What is down can be kept.
	p.must(i.Stop(ctx, 0))
	snapshot := p.keep(spec.ID)
	fork, _ := p.from(snapshot)
	if got := p.run(fork, agent.Command{Shell: "cat file; echo later > file"}); got != "kept\n" {
		t.Errorf("a fork has %q", got)
	}
	p.must(p.driver.Rollback(ctx, spec.ID, snapshot, limits))
	p.must(i.Start(ctx, spec))
	if got := p.run(i, agent.Command{Shell: "cat file"}); got != "kept\n" {
		t.Errorf("after a rollback there is %q", got)
	}
	for _, other := range []runtime.Instance{i, fork} {
		p.must(other.Remove(ctx))
	}
	p.must(p.driver.RemoveSnapshot(ctx, snapshot))
	p.nothingLeft()
}
