// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"sandpit.dev/agent/embedded"
	"sandpit.dev/image/imagetest"
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
	program, err := embedded.Program()
	if err != nil {
		t.Fatal(err)
	}
	d, err := docker.Open(t.Context(), docker.Options{
		Dir: dir, Namespace: namespace, Engine: engineapi.Environment{Host: "unix://" + h.Socket()}, Agent: program,
	})
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

// newNamespace is one of a server of its own.
func newNamespace() string { return strings.ToLower(rand.Text()[:12]) }

// All tests share an Engine, which gets the image once.
func TestDriver(t *testing.T) {
	skiptest.WithShort(t, "an Engine gets an image, and makes hundreds of containers")
	h := dockerdtest.New(t)
	image := python(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, p *place)
	}{
		{"AContainerHasNoMoreThanItShould", rights},
		{"StrangersAreNeitherShownNorTouched", strangers},
		{"ContainersInOtherHands", otherHands},
		{"WhatLiesInTheSocketsPlaceIsNotFollowed", socketsPlace},
		{"WhatItCannotDoIsRefused", refusals},
		{"AnEngineThatEnds", engineEnds},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newPlace(t, h)) })
	}
	t.Run("Conformance", func(t *testing.T) {
		runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
			dir, namespace := t.TempDir(), newNamespace()
			return runtimetest.Harness{
				Image: image,
				Open:  func(t *testing.T) runtime.Driver { return open(t, h, dir, namespace) },
				Must:  []runtime.Feature{runtime.LimitCPU, runtime.LimitMemory, runtime.LimitPids, runtime.RootUser, runtime.Reopen, runtime.Pause, runtime.Resize},
			}
		})
	})
}
