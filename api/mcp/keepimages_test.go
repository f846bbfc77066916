// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/images"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// shelf is a keeper of one image, which a sandbox uses. What no tool asks for it does not have.
type shelf struct{ service.Keeper }

func (shelf) build() image.Build {
	return image.Build{Image: image.Image{Name: "python", Digest: "sha256:" + strings.Repeat("a", 64), SizeBytes: 4096}, Current: true}
}

func (s shelf) Inspect(context.Context, access.Caller, string) (images.Details, error) {
	return images.Details{
		Status: image.Status{Entry: image.Entry{Name: "python", Start: []string{"serve", "\x1b[2J"}}, State: image.Ready},
		Builds: []images.Build{{Build: s.build(), Use: images.Use{Sandboxes: []*sandbox.Sandbox{{ID: "aaaaaaaaaaaaaaaa"}}, Pools: map[string]int{"recent": 2}}}},
	}, nil
}

func (shelf) Rebuild(context.Context, access.Caller, string) (image.Status, error) {
	return image.Status{Entry: image.Entry{Name: "python", Title: "anew"}, State: image.Ready}, nil
}

func (s shelf) Delete(_ context.Context, c access.Caller, d images.Deletion) (images.Deleted, error) {
	if err := c.Require(access.ServerAdmin); err != nil {
		return images.Deleted{}, err
	}
	if !d.Force {
		return images.Deleted{}, fault.New(fault.Conflict, "the image is in use")
	}
	return images.Deleted{Name: d.Name, Builds: []image.Image{s.build().Image}, Bytes: 4096, Use: images.Use{Sandboxes: []*sandbox.Sandbox{{}}}}, nil
}

func (s shelf) Prune(context.Context, access.Caller, images.Pruning) (images.Pruned, error) {
	return images.Pruned{Builds: []image.Image{s.build().Image}, Bytes: 4096, Kept: 1}, nil
}

func TestImagesAreAdministered(t *testing.T) {
	t.Parallel()
	h := open(t)
	services := service.Of(h.engine, h.inside, portsOf(h.engine), h.code, h.runs, deskOf(h.engine), skillsOf(h.engine))
	services.Keeper = shelf{}
	h.handler, h.url = serveWith(t, mcp.Options{Services: services, Version: "test", Groups: []string{toolset.GroupManage}, Previews: previews{}})
	s := h.session("t-server", handshake, nil)
	got := ok(t, s, "inspect_image", arguments{"image": "python"})
	wantParts(t, got, "python · ready", "sha256:aaaa", "new sandboxes get it · used by 1 sandbox, 0 snapshots, 2 ready in pools", "its start command: ")
	if strings.Contains(got, "\x1b") {
		t.Errorf("it has control characters: %q", got)
	}
	refused(t, s, "delete_image", arguments{"image": "python"}, "error (conflict)", "in use")
	refused(t, s, "delete_image", arguments{"image": "python", "digest": ""}, "argument digest is empty")
	wantParts(t, ok(t, s, "delete_image", arguments{"image": "python", "force": true, "dry_run": true}), "would delete python", "in use by, and deleted with force: 1 sandbox, 0 snapshots")
	wantParts(t, ok(t, s, "delete_image", arguments{"image": "python", "force": true}), "deleted python", "deleted with it: 1 sandbox")
	wantParts(t, ok(t, s, "prune_images", arguments{"dry_run": true}), "would free ", "python sha256:aaaa")
	wantParts(t, ok(t, s, "build_image", arguments{"image": "python", "rebuild": true}), "the image is built: ", "anew")
	for _, other := range []string{"t-alice", "t-admin"} {
		refused(t, h.session(other, handshake, nil), "delete_image", arguments{"image": "python"}, "error (denied)", "whole server")
	}
}
