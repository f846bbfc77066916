// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"os"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/runtimetest"
	"sandpit.dev/sandbox"
)

// Podman's service speaks the Engine's API, and takes containers, archives, events and streams its own way.
func TestPodman(t *testing.T) {
	skiptest.WithShort(t, "an Engine gets an image, and makes a hundred containers")
	h := dockerdtest.NewPodman(t)
	image := lendPython(t, h)
	t.Run("ContainersInOtherHands", func(t *testing.T) { otherHands(t, newPlace(t, h)) })
	t.Run("WhatAnImageHasArrivesAsItIs", func(t *testing.T) { filesArrive(t, newPlace(t, h)) })
	for _, test := range []struct {
		name string
		run  func(t *testing.T, p *place)
	}{
		{"StrangersImagesAreNeitherShownNorTouched", strangersImages},
		{"TheImageOfASnapshotGoesWithTheLastThatUsesIt", imagesGo},
		{"WhatWasLeftHalfDone", halfDone},
		{"AContainerSeesTheServersFiles", containersSee},
		{"StrangersVolumesAreNeitherShownNorTouched", strangersVolumes},
		{"PartsOfVolumesOverStreamsAreRefused", partsOverStreams},
		{"DirectoriesOfVolumesAreMadeAsTheOnesAbove", partsMade},
		{"EveryStartHasANetworkOfItsOwn", networks},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newPlace(t, h)) })
	}
	t.Run("Conformance", func(t *testing.T) { // the rest is in TestSoakPodman
		podmanConforms(t, h, image, "Lifecycle", "Limits", "Network", "Pause", "Meter", "Snapshots", "Volumes/SeveralShareOne", "Volumes/ItOutlivesItsSandboxes", "Volumes/ItIsNoPartOfASnapshot",
			"Volumes/ItIsNoPartOfADifference", "Volumes/OneThatIsMountedIsNotRemoved", "Volumes/OwnersAreRightInEachView", "Volumes/WhatMakesNoSenseIsRefused",
			"Volumes/ItOutlivesTheServer", "Volumes/AnyWhere", "Volumes/ReadOnly")
	})
}

func TestSoakPodman(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to run all of the suite with Podman")
	}
	h := dockerdtest.NewPodman(t)
	t.Run("WhatChangesWhileItIsRead", func(t *testing.T) { readWhileWritten(t, newPlace(t, h)) })
	podmanConforms(t, h, python(t))
}

// partsOverStreams: Podman takes the request for a directory of a volume, and mounts all of it.
func partsOverStreams(t *testing.T, p *place) {
	p = streamPlace(t, p.host)
	spec := p.spec()
	spec.Mounts = []sandbox.Mount{{Volume: p.volume(), Path: "/workspace/data", Sub: "part"}}
	if _, err := p.driver.Create(t.Context(), spec); fault.Of(err) != fault.Unsupported || fault.As(err).Remedy == "" {
		t.Errorf("Create with one: %v", err)
	}
	p.must(p.driver.RemoveVolume(t.Context(), spec.Mounts[0].Volume))
	p.nothingLeft()
}

// partsMade: what is missing of a directory of a volume is made, of one that nobody had before, too, and what lies in its way is found.
func partsMade(t *testing.T, p *place) {
	ctx := t.Context()
	id := p.volume()
	first, spec := p.with(sandbox.Mount{Volume: id, Path: "/mnt/part", Sub: "a/b", ReadOnly: true})
	p.wantMounts(first, map[string]string{"/mnt/part": "ro,nosuid,nodev"})
	if got := p.run(first, agent.Command{User: "root", Shell: "touch /mnt/part/x 2>/dev/null || echo refused; ls -A /.sandpit/volumes/0 2>/dev/null | wc -l"}); got != "refused\n0\n" {
		t.Errorf("a directory to read has %q", got)
	}
	whole, _ := p.with(sandbox.Mount{Volume: id, Path: "/workspace/data"})
	if got := p.run(whole, agent.Command{Shell: "stat -c '%U %a' data data/a data/a/b; touch data/a/b/seen; ln -s /etc data/link; ln -s a data/near; echo > data/file"}); got != "sandbox 755\nsandbox 755\nsandbox 755\n" {
		t.Errorf("they were made as %q", got)
	}
	if got := p.run(first, agent.Command{Shell: "ls -A /mnt/part"}); got != "seen\n" {
		t.Errorf("there is %q", got)
	}
	p.run(whole, agent.Command{User: "root", Shell: "install -d -m 755 -o root /workspace/data/of-root"})
	deep, _ := p.with(sandbox.Mount{Volume: id, Path: "/mnt/part", Sub: "of-root/x/y"})
	if got := p.run(deep, agent.Command{Shell: "stat -c %U /mnt/part; touch /mnt/part/x 2>/dev/null || echo refused"}); got != "root\nrefused\n" {
		t.Errorf("below root's there is %q", got)
	}
	for _, sub := range []string{"link", "link/x", "near", "near/b", "file", "file/x"} {
		other := p.spec()
		other.Mounts = []sandbox.Mount{{Volume: id, Path: "/mnt/part", Sub: sub}}
		if _, err := p.driver.Create(ctx, other); fault.Of(err) != fault.Conflict || fault.As(err).Remedy == "" {
			t.Errorf("the directory %s: %v", sub, err)
		}
	}
	// What went meanwhile is made again, and a server that ended between the start and that leaves it to the next.
	p.must(first.Stop(ctx, 0))
	p.run(whole, agent.Command{Shell: "rm -r data/a"})
	p.must(docker.StartAlone(ctx, first, spec))
	p.must(p.driver.Close())
	p.driver = open(t, p.host, p.dir, p.namespace)
	again, err := p.driver.Open(ctx, first.Handle())
	p.must(err)
	p.wantMounts(again, map[string]string{"/mnt/part": "ro,nosuid,nodev"})
	for _, i := range []runtime.Instance{again, whole, deep} {
		i, err := p.driver.Open(ctx, i.Handle())
		p.must(err)
		p.must(i.Remove(ctx))
	}
	p.must(p.driver.RemoveVolume(ctx, id))
	p.nothingLeft()
}

func podmanConforms(t *testing.T, h *dockerdtest.Host, image runtime.Image, without ...string) {
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		dir, namespace := t.TempDir(), newNamespace()
		return runtimetest.Harness{
			Image: image, Coarse: coarse,
			Open:  func(t *testing.T) runtime.Driver { return open(t, h, dir, namespace) },
			Must:  []runtime.Feature{runtime.LimitCPU, runtime.LimitMemory, runtime.LimitPids, runtime.KillTree, runtime.RootUser, runtime.Reopen, runtime.Pause, runtime.Resize, runtime.Network, runtime.Snapshots, runtime.Volumes, runtime.VolumeParts},
			Lacks: lacks(),
			Tried: tried(), Otherwise: otherwiseOfPodman(),
		}
	}, append(without, "Concurrency", "Changes", "Watches", "Isolation", "Neighbours")...)
}

func otherwiseOfPodman() map[string]runtimetest.Otherwise {
	return map[string]runtimetest.Otherwise{
		"leave for another network": {Want: "REFUSED EPERM or REFUSED ENOSYS or MIXED …", Why: "Podman's filter lets user namespaces be made; a network that is made in one has a loopback and nothing else"},
	}
}
