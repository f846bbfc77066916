// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"io"
	"time"

	"sandpit.dev/engine/archive"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Export writes a snapshot, which the caller holds, to w as an archive that Import reads, on this
// server or another. What was written to w before an error is not an archive: its end is missing.
func (k *Keeper) Export(ctx context.Context, snap *sandbox.Snapshot, w io.Writer) error {
	d, err := k.Driver(snap.Runtime)
	if err != nil {
		return err
	}
	meta := archive.Meta{Image: snap.Image, ImageDigest: snap.ImageDigest, Limits: snap.Limits, Name: snap.Name, CreatedAt: snap.CreatedAt}
	return archive.Write(w, meta, func(w io.Writer) error { return d.Export(ctx, snap.ID, w) })
}

// Import makes a snapshot of an archive, which may come from anywhere: nothing
// in it is trusted. It belongs to no sandbox, and has a name unless that is empty. The image that
// it was made of has to be known here, in exactly that build, else it is fault.NotFound. What is
// more than is kept of an archive is fault.TooLarge, more than [archive.MaxImports] of a project at
// a time fault.Exhausted.
func (k *Keeper) Import(ctx context.Context, project string, r io.Reader, name string, who core.Actor) (*sandbox.Snapshot, error) {
	turn, err := k.imports.Begin(project)
	if err != nil {
		return nil, err
	}
	defer turn.End()
	return k.unpack(ctx, project, turn.Reader(ctx, r), name, who)
}

func (k *Keeper) unpack(ctx context.Context, project string, r io.Reader, name string, who core.Actor) (*sandbox.Snapshot, error) {
	d, err := k.Driver(k.core.Default)
	if err != nil {
		return nil, err
	}
	meta, layer, err := archive.Open(r, 2*k.most+64<<20)
	if err != nil {
		return nil, err
	}
	if _, err := k.images.FindDigest(meta.Image, meta.ImageDigest); err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the archive was made of the image %s in the build %s, which this server does not have", meta.Image, meta.ImageDigest).
			WithRemedy("build the image %s here, or take over the server's images from where the archive was written; another build of it has another digest and does not fit", meta.Image)
	}
	snap := &sandbox.Snapshot{
		ID: sandbox.NewID(), Project: project, Name: name,
		Image: meta.Image, ImageDigest: meta.ImageDigest, Runtime: k.core.Default, Limits: meta.Limits,
		State: sandbox.SnapshotCreating, SizeBytes: -1, CreatedAt: k.core.Now(), CreatedBy: who.Name,
		Detail: "imported; taken at " + meta.CreatedAt.UTC().Format(time.RFC3339),
	}
	if meta.Name != "" {
		snap.Detail += fmt.Sprintf(" as %q", meta.Name)
	}
	give, err := k.core.Holds.Own(ctx, snap.ID)
	if err != nil {
		return nil, err
	}
	defer give()
	err = k.core.Store.Update(ctx, func(tx store.Tx) error { return tx.Snapshots().Insert(snap) })
	if fault.Is(err, fault.Exists) {
		return nil, fault.Wrap(fault.Exists, err, "the project has an imported snapshot named %q already", name).
			WithRemedy("choose another name, or delete that one")
	}
	if err != nil {
		return nil, err
	}
	k.core.Checkpoint("import.intent")
	_, err = k.images.FindDigest(snap.Image, snap.ImageDigest) // whoever deletes it may not have seen the record
	var got runtime.Snapshot
	if err == nil {
		got, err = d.Import(ctx, snap.ID, layer, k.most)
	}
	err = layer.End(err)
	k.core.Checkpoint("import.done")
	if err != nil {
		return nil, k.undo(ctx, snap, who, err)
	}
	ready := *snap
	ready.State, ready.SizeBytes = sandbox.SnapshotReady, got.SizeBytes
	ev := k.event(sandbox.EventSnapshot, &ready, who, snap.Detail)
	err = k.core.Store.Update(ctx, func(tx store.Tx) error {
		if err := tx.Snapshots().Update(&ready); err != nil {
			return err
		}
		return tx.Events().Append(ev)
	})
	if err != nil {
		return nil, k.undo(ctx, snap, who, err)
	}
	k.core.Metrics.Happened([]*sandbox.Event{ev})
	k.core.Checkpoint("import.outcome")
	return &ready, nil
}

// Archiver returns the driver of a runtime, where a backup can have its disks.
func (k *Keeper) Archiver(name string) (runtime.Archiver, error) {
	d, err := k.Driver(name)
	if err != nil {
		return nil, err
	}
	a, ok := d.(runtime.Archiver)
	if !ok {
		return nil, fault.New(fault.Unsupported, "the disks of the runtime %q cannot be put into a backup", name)
	}
	return a, nil
}
