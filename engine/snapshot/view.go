// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"

	"sandpit.dev/engine/core"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// View opens the files of a sandbox's disk at a point in time. A snapshot is neither deleted nor archived before the view is
// closed.
func (k *Keeper) View(ctx context.Context, s *sandbox.Sandbox, at string) (runtime.View, error) {
	p, release, err := k.point(ctx, s, at)
	if err != nil {
		return nil, err
	}
	return k.view(ctx, s, p, release)
}

// ViewOf opens the files of a snapshot that is named by itself, as View does.
func (k *Keeper) ViewOf(ctx context.Context, project, ref string) (runtime.View, error) {
	snap, release, err := k.Hold(ctx, project, "", ref)
	if err != nil {
		return nil, err
	}
	of := sandbox.Sandbox{Image: snap.Image, ImageDigest: snap.ImageDigest, Runtime: snap.Runtime, Limits: snap.Limits}
	return k.view(ctx, &of, runtime.Point{Snapshot: snap.ID}, release)
}

func (k *Keeper) view(ctx context.Context, s *sandbox.Sandbox, p runtime.Point, release func()) (runtime.View, error) {
	d, err := core.Driver[runtime.Viewer](k.core, s.Runtime, "disks whose files can be read without starting a sandbox; fork the snapshot, and read them there")
	var v runtime.View
	if err == nil {
		img, ierr := k.Image(s.Image, s.ImageDigest)
		if err = ierr; err == nil {
			v, err = d.View(ctx, core.Spec(s, img).Image, p)
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return held{v, release}, nil
}

// held is a view that lets go of its snapshot when it is closed, which is once.
type held struct {
	runtime.View
	release func()
}

func (h held) Close() error {
	defer h.release()
	return h.View.Close()
}
