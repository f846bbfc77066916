// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/client"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/dockerd"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime/docker/engineapi"
)

// A server whose sandboxes are containers is killed under load as one of the native runtime is. The Engine goes on.
func TestSurviveKill9OnAnEngine(t *testing.T) {
	engine := dockerdtest.New(t)
	image := imagetest.Python(t)
	engine.Lend(dockerd.Image{
		Root: image.Root, Names: []string{"localhost/sandpit/image:" + strings.TrimPrefix(image.Digest, "sha256:")},
		Labels: map[string]string{"dev.sandpit.image": image.Digest},
	})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := hostIn(t, dir, "127.0.0.1:0")
	h.env = []string{"SANDPIT_RUNTIMES=docker", "SANDPIT_DOCKER_HOST=unix://" + engine.Socket()}
	t.Cleanup(h.sweep)
	h.start()
	ctx := t.Context()
	p := newPromises(h)
	rounds := length(4, 100)
	for round := range rounds {
		if _, err := h.killedUnder(ctx, p, round); err != nil {
			t.Fatalf("round %d, before the kill: %v", round, err)
		}
		h.start()
		if err := p.kept(ctx, h.client); err != nil {
			t.Fatalf("round %d, after the kill: %v", round, err)
		}
		if err := h.thin(ctx, p); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if err := h.deleteAll(ctx); err != nil {
		t.Fatal(err)
	}
	page, err := h.client.ListPage(ctx, client.ListQuery{})
	if err != nil || page.Total != 0 {
		t.Errorf("after deleting all: %d sandboxes, %v", page.Total, err)
	}
	api, err := engineapi.Find(ctx, engineapi.Environment{Host: "unix://" + engine.Socket()})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	if left, err := api.ListContainers(ctx, "dev.sandpit.sandbox"); err != nil || len(left) > 0 {
		t.Errorf("after deleting all the Engine has %d containers of sandboxes, %v", len(left), err)
	}
}
