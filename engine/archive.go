// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"io"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/archive"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// ExportSnapshot writes a snapshot, named as for Snapshot, to w as an archive that
// ImportSnapshot reads, on this server or another. It is not deleted meanwhile. What
// w got before an error is no archive: its end is missing.
func (e *Engine) ExportSnapshot(ctx context.Context, c access.Caller, of, snap string, w io.Writer) error {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return err
	}
	defer e.group.leave()
	bound, cancel := e.group.bind(ctx)
	defer cancel()
	kept, release, err := e.holdSnapshot(bound, c.Project, of, snap)
	if err != nil {
		return err
	}
	defer release()
	d, err := core.Driver[runtime.Snapshotter](e.core, kept.Runtime, "snapshots")
	if err != nil {
		return err
	}
	meta := archive.Meta{Image: kept.Image, ImageDigest: kept.ImageDigest, Limits: kept.Limits, Name: kept.Name, CreatedAt: kept.CreatedAt}
	err = archive.Write(w, meta, func(w io.Writer) error { return d.Export(bound, kept.ID, w) })
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return shuttingDown()
	}
	return err
}

// ImportRequest is how an imported snapshot shall be known.
type ImportRequest struct {
	Name string // unique among the project's imported ones; empty: none
}

// ImportSnapshot makes a snapshot of an archive, which may come from anywhere: nothing
// in it is trusted. It belongs to no sandbox. The image that it was made of has to be
// known here, in exactly that build, else it is fault.NotFound. As much is kept of it as
// a sandbox's disk holds by default, more is fault.TooLarge. More than [archive.MaxImports] of a
// project at a time are fault.Exhausted.
func (e *Engine) ImportSnapshot(ctx context.Context, c access.Caller, r io.Reader, q ImportRequest) (*sandbox.Snapshot, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	if q.Name != "" {
		if err := sandbox.CheckSnapshotName("name", q.Name); err != nil {
			return nil, err
		}
	}
	if err := e.enterWork(c, access.SandboxesWrite); err != nil {
		return nil, err
	}
	defer e.group.leave()
	if err := e.refuseValues(ctx, c.Project, "", onRecord{"name": {q.Name}}); err != nil {
		return nil, err
	}
	turn, err := e.imports.Begin(c.Project)
	if err != nil {
		return nil, err
	}
	defer turn.End()
	bound, cancel := e.group.bind(ctx)
	defer cancel()
	snap, err := e.importSnapshot(bound, core.ActorOf(c), c.Project, turn.Reader(bound, r), q)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		err = shuttingDown()
	}
	return snap, err
}

func (e *Engine) importSnapshot(ctx context.Context, who core.Actor, project string, r io.Reader, q ImportRequest) (*sandbox.Snapshot, error) {
	d, err := core.Driver[runtime.Snapshotter](e.core, e.fallback, "snapshots")
	if err != nil {
		return nil, err
	}
	most := int64(e.defaults.Limits.DiskMB) << 20
	meta, layer, err := archive.Open(r, 2*most+64<<20)
	if err != nil {
		return nil, err
	}
	if _, err := e.images.FindDigest(meta.Image, meta.ImageDigest); err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the archive was made of the image %s in the build %s, which this server does not have", meta.Image, meta.ImageDigest).
			WithRemedy("build the image %s here, or take over the server's images from where the archive was written; another build of it has another digest and does not fit", meta.Image)
	}
	snap := &sandbox.Snapshot{
		ID: sandbox.NewID(), Project: project, Name: q.Name,
		Image: meta.Image, ImageDigest: meta.ImageDigest, Runtime: e.fallback, Limits: meta.Limits,
		State: sandbox.SnapshotCreating, SizeBytes: -1, CreatedAt: e.now(), CreatedBy: who.Name,
		Detail: "imported; taken at " + meta.CreatedAt.UTC().Format(time.RFC3339),
	}
	if meta.Name != "" {
		snap.Detail += fmt.Sprintf(" as %q", meta.Name)
	}
	give, err := e.holds.Own(ctx, snap.ID)
	if err != nil {
		return nil, err
	}
	defer give()
	err = e.store.Update(ctx, func(tx store.Tx) error { return tx.Snapshots().Insert(snap) })
	if fault.Is(err, fault.Exists) {
		return nil, fault.Wrap(fault.Exists, err, "the project has an imported snapshot named %q already", q.Name).
			WithRemedy("choose another name, or delete that one")
	}
	if err != nil {
		return nil, err
	}
	e.checkpoint("import.intent")
	got, err := d.Import(ctx, snap.ID, layer, most)
	err = layer.End(err)
	e.checkpoint("import.done")
	if err != nil {
		return nil, e.undoSnapshot(ctx, snap, who, err)
	}
	ready := *snap
	ready.State, ready.SizeBytes = sandbox.SnapshotReady, got.SizeBytes
	ev := snapshotEvent(who, sandbox.EventSnapshot, &ready, e.now(), snap.Detail)
	err = e.store.Update(ctx, func(tx store.Tx) error {
		if err := tx.Snapshots().Update(&ready); err != nil {
			return err
		}
		return tx.Events().Append(ev)
	})
	if err != nil {
		return nil, e.undoSnapshot(ctx, snap, who, err)
	}
	e.metrics.Happened([]*sandbox.Event{ev})
	e.checkpoint("import.outcome")
	return &ready, nil
}
