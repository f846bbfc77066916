// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"os"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
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
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newPlace(t, h)) })
	}
	t.Run("PartsOfVolumesAreRefused", func(t *testing.T) {
		p := newPlace(t, h)
		spec := p.spec()
		spec.Mounts = []sandbox.Mount{{Volume: p.volume(), Path: "/workspace/data", Sub: "part"}}
		if _, err := p.driver.Create(t.Context(), spec); fault.Of(err) != fault.Unsupported || fault.As(err).Remedy == "" {
			t.Errorf("Create with one: %v", err)
		}
		p.must(p.driver.RemoveVolume(t.Context(), spec.Mounts[0].Volume))
	})
	t.Run("Conformance", func(t *testing.T) { // the rest is in TestSoakPodman
		podmanConforms(t, h, image, "Lifecycle", "Limits", "Pause", "Meter", "Snapshots", "Volumes/SeveralShareOne", "Volumes/ItOutlivesItsSandboxes", "Volumes/ItIsNoPartOfASnapshot",
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

func podmanConforms(t *testing.T, h *dockerdtest.Host, image runtime.Image, without ...string) {
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		dir, namespace := t.TempDir(), newNamespace()
		return runtimetest.Harness{
			Image: image, Coarse: coarse,
			Open:  func(t *testing.T) runtime.Driver { return open(t, h, dir, namespace) },
			Must:  []runtime.Feature{runtime.LimitCPU, runtime.LimitMemory, runtime.LimitPids, runtime.KillTree, runtime.RootUser, runtime.Reopen, runtime.Pause, runtime.Resize, runtime.Snapshots, runtime.Volumes},
			Lacks: append(lacks(), runtime.VolumeParts),
			Tried: tried(),
		}
	}, append(without, "Concurrency", "Network", "Changes", "Watches", "Isolation", "Neighbours")...)
}
