// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
)

// unbuilt is images with one that only administrators have built.
type unbuilt struct {
	engine.Images
	built bool
}

func (u *unbuilt) Resolve(name string) (image.Entry, error) {
	if name == "slow" {
		return image.Entry{Name: "slow", ByAdmin: true}, nil
	}
	return u.Images.Resolve(name)
}

func (u *unbuilt) Find(ctx context.Context, name string) (image.Image, error) {
	if name == "slow" && !u.built {
		return image.Image{}, fault.New(fault.NotFound, "it is not built")
	}
	return u.Ensure(ctx, name)
}

func (u *unbuilt) Ensure(ctx context.Context, name string) (image.Image, error) {
	if name == "slow" {
		u.built, name = true, "python"
	}
	return u.Images.Ensure(ctx, name)
}

func TestBuildsBeginWithAnyImage(t *testing.T) {
	h := open(t, t.TempDir(), func(o *engine.Options) {
		o.Policy, o.Network.Builds = image.Policy{Allowed: []string{"python"}}, "_builds"
	})
	builds := alice
	builds.Project = "_builds"
	if _, _, err := h.engine.Create(t.Context(), builds, engine.CreateRequest{Image: "node"}); err != nil {
		t.Errorf("a build: %v", err)
	}
	if _, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Image: "node"}); !fault.Is(err, fault.Denied) {
		t.Errorf("anybody else: %v", err)
	}
}

func TestOnlyAdministratorsHaveEntriesBuilt(t *testing.T) {
	var images *unbuilt
	h := open(t, t.TempDir(), func(o *engine.Options) {
		images = &unbuilt{Images: o.Images}
		o.Images = images
	})
	if _, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Image: "slow"}); !fault.Is(err, fault.NotFound) || images.built {
		t.Errorf("without the scope: %v", err)
	}
	admin := alice
	admin.Scopes = []access.Scope{access.Admin}
	if _, _, err := h.engine.Create(t.Context(), admin, engine.CreateRequest{Image: "slow"}); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	if _, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Image: "slow"}); err != nil {
		t.Errorf("once it is built: %v", err)
	}
}
