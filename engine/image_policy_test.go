// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
)

func TestCreateKeepsToTheOperatorsImages(t *testing.T) {
	t.Parallel()
	t.Run("AnotherImageIsRefused", func(t *testing.T) {
		t.Parallel()
		h := open(t, t.TempDir(), func(o *engine.Options) { o.Policy = image.Policy{Allowed: []string{"python"}} })
		kept := h.create(engine.CreateRequest{Key: "k", Image: "python-3.12"})
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Image: "node"})
		wantCode(t, err, fault.Denied)
		if r := fault.As(err).Remedy; !strings.Contains(r, "python") {
			t.Errorf("remedy: %s", r)
		}
		if s, created, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k"}); err != nil || created || s.ID != kept.ID {
			t.Errorf("the key: %v, %v, %v", s, created, err)
		}
	})
	t.Run("WhatASandboxAlreadyHasIsNotAskedAgain", func(t *testing.T) {
		t.Parallel()
		h := open(t, t.TempDir())
		old := h.create(engine.CreateRequest{Key: "old", Image: "node"})
		h.restart(func(o *engine.Options) { o.Policy = image.Policy{Allowed: []string{"python"}} })
		if s, created, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "old", Image: "node"}); err != nil || created || s.ID != old.ID {
			t.Errorf("%v, %v, %v", s, created, err)
		}
		snap, err := h.engine.CreateSnapshot(t.Context(), alice, "old", engine.SnapshotRequest{Name: "n"})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = h.engine.Create(t.Context(), alice, engine.CreateRequest{From: string(snap.ID)})
		wantCode(t, err, fault.Denied)
	})
	t.Run("ANameThatIsNotTrueIsRefusedWhereThatIsAskedFor", func(t *testing.T) {
		t.Parallel()
		h := open(t, t.TempDir(), func(o *engine.Options) { o.Images = versioned{} })
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Image: "python-3.12", ImageExact: true})
		wantCode(t, err, fault.NotFound)
		h.nothing()
		h.create(engine.CreateRequest{Image: "python-3.12"})
		h.create(engine.CreateRequest{Image: "python", ImageExact: true})
	})
}

// versioned are images whose versions are known.
type versioned struct{ catalogue }

func (v versioned) Ensure(ctx context.Context, name string) (image.Image, error) {
	img, err := v.catalogue.Ensure(ctx, name)
	img.Versions = map[string]string{"python": "3.11.2"}
	return img, err
}

func (v versioned) Find(ctx context.Context, name string) (image.Image, error) {
	return v.Ensure(ctx, name)
}
