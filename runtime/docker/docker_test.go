// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"crypto/rand"
	"os"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/agent/embedded"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/dockerd"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/runtime/runtimetest"
)

// open opens a driver on an Engine, as the server of a namespace.
func open(t *testing.T, h *dockerdtest.Host, dir, namespace string) *docker.Driver {
	t.Helper()
	return openWith(t, docker.Options{Dir: dir, Namespace: namespace, Engine: engineapi.Environment{Host: "unix://" + h.Socket()}})
}

func openWith(t *testing.T, o docker.Options) *docker.Driver {
	t.Helper()
	var err error
	if o.Agent, err = embedded.Program(); err != nil {
		t.Fatal(err)
	}
	d, err := docker.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("docker.Open: %v", err)
	}
	return d
}

func python(t *testing.T) runtime.Image {
	t.Helper()
	img := imagetest.Python(t)
	return runtime.Image{Name: img.Name, Digest: img.Digest, Root: img.Root}
}

// lendPython gives the Engine the image as the driver would have loaded it. That takes an Engine a minute, is tried with small
// images here, and with this one in TestSoakSnapshots and TestSoakPodman.
func lendPython(t *testing.T, h *dockerdtest.Host) runtime.Image {
	t.Helper()
	img := python(t)
	h.Lend(dockerd.Image{
		Root: img.Root, Names: []string{"localhost/sandpit/image:" + strings.TrimPrefix(img.Digest, "sha256:")},
		Labels: map[string]string{"dev.sandpit.image": img.Digest},
	})
	return img
}

// coarse is what the Engine's archives of layers leave out.
const coarse = "an Engine's images have times to the second, no user attributes, and each container files of its own in /etc"

// newNamespace is one of a server of its own.
func newNamespace() string { return strings.ToLower(rand.Text()[:12]) }

// All tests share an Engine, which is lent the image once.
func TestDriver(t *testing.T) {
	skiptest.WithShort(t, "an Engine gets an image, and makes hundreds of containers")
	h := dockerdtest.New(t)
	t.Run("AnEngineWithoutImagesIsTriedToo", func(t *testing.T) { triedEmpty(t, newPlace(t, h)) }) // while it has none
	image := lendPython(t, h)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, p *place)
	}{
		{"AContainerHasNoMoreThanItShould", rights},
		{"StrangersAreNeitherShownNorTouched", strangers},
		{"ContainersInOtherHands", otherHands},
		{"WhatLiesInTheSocketsPlaceIsNotFollowed", socketsPlace},
		{"WhatItCannotDoIsRefused", refusals},
		{"StrangersImagesAreNeitherShownNorTouched", strangersImages},
		{"TheImageOfASnapshotGoesWithTheLastThatUsesIt", imagesGo},
		{"WhatChangesWhileItIsRead", readWhileWritten},
		{"SnapshotsBesideStreams", snapshotsBesideStreams},
		{"WhatWasLeftHalfDone", halfDone},
		{"StrangersVolumesAreNeitherShownNorTouched", strangersVolumes},
		{"NoLinkLeadsOutOfAVolume", volumeRaces},
		{"VolumesThatWereLeftHalfDone", volumesHalfDone},
		{"VolumesComeAndGoAtOnce", volumesAtOnce},
		{"AnEngineThatDoesNotSeeOurFiles", filesElsewhere},
		{"AContainerShowsWhatTheEngineSees", containersSee},
		{"EveryStartHasANetworkOfItsOwn", networks},
		{"AnothersSocketIsNoWayToAnothersNetwork", socketOfAnother},
		{"WhereNoProcessIsLeft", noProcessLeft},
		{"TrafficThroughAnAgent", agentTraffic},
		{"TrafficOfAnEngineElsewhere", trafficElsewhere},
		{"ImagesOfARegistry", registryImages},
		{"AnImageIsSentOnWhoeverWaits", sendingGoesOn},
		{"BrokenLines", func(t *testing.T, p *place) { brokenLines(t, p, brokenVerbs(), false, away, ended) }},
		{"AnEngineThatHangs", func(t *testing.T, p *place) { brokenLines(t, p, shortVerbs(), false, half) }},
		{"AnEngineThatStandsStill", standsStill},
		{"WhatAnImageHasArrivesAsItIs", filesArrive},
		{"TheAgentPassesItsSuite", agentInShort},
		{"ACommandIsBegunOnce", begunOnce},
		{"AnEngineThatEnds", engineEnds},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newPlace(t, h)) })
	}
	t.Run("WithoutNetworks", func(t *testing.T) { withoutNetworks(t, h) })
	t.Run("ConformanceOverStreams", func(t *testing.T) { // as with an Engine elsewhere
		runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
			dir, namespace := t.TempDir(), newNamespace()
			return runtimetest.Harness{
				Image: image,
				Open: func(t *testing.T) runtime.Driver {
					return openWith(t, docker.Options{Dir: dir, Namespace: namespace, Engine: engineapi.Environment{Host: "unix://" + h.Socket()}, Stream: true})
				},
				Must:      []runtime.Feature{runtime.LimitMemory, runtime.RootUser, runtime.RootDisk, runtime.Reopen, runtime.Network, runtime.Snapshots, runtime.Volumes, runtime.TrackChanges, runtime.WatchFiles},
				Lacks:     lacksOverStreams(t, h),
				Tried:     tried(),
				Otherwise: otherwise(),
			}
		}, append(mostOfVolumes(), "Pause", "Resize", "Meter", "Concurrency", "Snapshots", "Volumes/ItIsNoPartOfADifference")...) // no stream has a part in them, but that no new one begins while a container is paused
	})
	t.Run("Conformance", func(t *testing.T) { // see TestSoakSnapshots
		conforms(t, h, image, "Snapshots", "Volumes/ItIsNoPartOfADifference", "Volumes/AnyWhere")
	})
}

// lacks are the features that no Engine gives to the driver, where it runs containers as root.
func lacks() []runtime.Feature {
	return []runtime.Feature{
		runtime.Isolation, runtime.LimitSockets, runtime.LimitDisk, runtime.Sudo, runtime.CheapSnapshots,
	}
}

// lacksOverStreams are those of an Engine whose containers the server does not enter: Docker mounts directories of volumes from 26 on.
func lacksOverStreams(t *testing.T, h *dockerdtest.Host) []runtime.Feature {
	t.Helper()
	engine, err := engineapi.Find(t.Context(), engineapi.Environment{Host: "unix://" + h.Socket()})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	if engine.MountsParts() {
		return lacks()
	}
	return append(lacks(), runtime.VolumeParts)
}

// tried are tests of the groups for isolation that hold on every Engine.
func tried() []string { return []string{"CommandsRunAsTheSandboxUser"} }

// mostOfVolumes are tests of volumes that are the same however agents are reached.
func mostOfVolumes() []string {
	var out []string
	for _, name := range []string{"ItIsThereAtEachStart", "OwnersAreRightInEachView", "ALinkIsNotFollowed", "WhatMakesNoSenseIsRefused", "ItOutlivesTheServer", "AnyWhere", "ReadOnly"} {
		out = append(out, "Volumes/"+name)
	}
	return out
}

// otherwise are the attempts that have other outcomes in an Engine's container than on the native runtime.
func otherwise() map[string]runtimetest.Otherwise {
	return map[string]runtimetest.Otherwise{
		"leave for another network": {Want: "REFUSED EPERM or REFUSED ENOSYS", Why: "the Engine's filter says of clone3, whose flags no filter sees, that there is none"},
	}
}

// conforms runs the suite but for the groups in without.
func conforms(t *testing.T, h *dockerdtest.Host, image runtime.Image, without ...string) {
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		dir, namespace := t.TempDir(), newNamespace()
		return runtimetest.Harness{
			Image: image, Coarse: coarse,
			Open:      func(t *testing.T) runtime.Driver { return open(t, h, dir, namespace) },
			Must:      []runtime.Feature{runtime.LimitCPU, runtime.LimitMemory, runtime.LimitPids, runtime.KillTree, runtime.RootUser, runtime.Reopen, runtime.Pause, runtime.Resize, runtime.Network, runtime.Snapshots, runtime.Volumes, runtime.VolumeParts, runtime.TrackChanges, runtime.WatchFiles},
			Lacks:     lacks(),
			Tried:     tried(),
			Otherwise: otherwise(),
		}
	}, without...)
}

// What reads or writes whole disks through the Engine takes minutes, and so do all ways in which a call breaks.
func TestSoakSnapshots(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to read and write whole disks through the Engine")
	}
	h := dockerdtest.New(t)
	t.Run("BrokenLines", func(t *testing.T) {
		brokenLines(t, newPlace(t, h), brokenVerbs(), false, unasked, unanswered, away, ended)
	})
	t.Run("AnEngineThatHangs", func(t *testing.T) { brokenLines(t, newPlace(t, h), brokenVerbs(), true, silent, half) })
	t.Run("WhoWaitsForADiskIsFrozen", func(t *testing.T) { freezesWriters(t, newPlace(t, h)) })
	t.Run("ManyLayersBecomeOne", func(t *testing.T) { layersBecomeOne(t, newPlace(t, h)) })
	t.Run("ASnapshotFromOutside", func(t *testing.T) { fromOutside(t, newPlace(t, h)) })
	t.Run("Conformance", func(t *testing.T) {
		conforms(t, h, python(t), "Lifecycle", "Restart", "Limits", "Pause", "Resize", "Meter", "Network", "Changes", "Watches", "Users", "Told", "Isolation", "Neighbours", "Concurrency")
	})
}

// An Engine that maps users gives containers a root that is nobody on the host.
func TestMappedUsers(t *testing.T) {
	skiptest.WithShort(t, "an Engine makes dozens of containers")
	h := dockerdtest.NewMapped(t)
	image := lendPython(t, h)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, p *place)
	}{
		{"RootIsNobodyOnTheHost", rootIsNobody},
		{"AContainerHasNoMoreThanItShould", rights},
		{"WhatLiesInTheSocketsPlaceIsNotFollowed", socketsPlace},
		{"TheImageOfASnapshotGoesWithTheLastThatUsesIt", imagesGo},
		{"EveryStartHasANetworkOfItsOwn", networks},
		{"WhatAnImageHasArrivesAsItIs", filesArrive},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newPlace(t, h)) })
	}
	t.Run("Conformance", func(t *testing.T) {
		runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
			dir, namespace := t.TempDir(), newNamespace()
			return runtimetest.Harness{
				Image: image, Coarse: coarse,
				Open:  func(t *testing.T) runtime.Driver { return open(t, h, dir, namespace) },
				Must:  []runtime.Feature{runtime.LimitCPU, runtime.LimitMemory, runtime.LimitPids, runtime.KillTree, runtime.RootUser, runtime.Reopen, runtime.Pause, runtime.Resize, runtime.Network, runtime.Snapshots},
				Lacks: lacks(), Tried: triedWhereMapped(), Otherwise: otherwiseWhereMapped(),
			}
		}, append(slices.DeleteFunc(mostOfVolumes(), func(name string) bool { return name == "Volumes/OwnersAreRightInEachView" }),
			"Volumes/ItIsNoPartOfADifference", "Restart", "Limits", "Pause", "Resize", "Meter", "Snapshots", "Network", "Concurrency")...) // which do not know who root is
	})
}
