// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/archived"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/query"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// SnapshotRequest is a snapshot that is to be taken.
type SnapshotRequest struct {
	Name    string // see sandbox.CheckSnapshotName; empty: none
	Replace bool   // the snapshot that has the name makes room, once this one is kept
}

// snapshotBound bounds taking one: a host that cannot share what two disks have in
// common copies it.
const snapshotBound = 10 * time.Minute

// CreateSnapshot keeps the disk of a sandbox as it is now: of one that runs its
// processes stand still for an instant, and its commands go on. Volumes are no part
// of it. A name that another of the sandbox's snapshots has is fault.Exists unless
// the request says replace, more than sandbox.MaxSnapshots are fault.Exhausted.
func (e *Engine) CreateSnapshot(ctx context.Context, c access.Caller, ref string, r SnapshotRequest) (*sandbox.Snapshot, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	if r.Name != "" {
		if err := sandbox.CheckSnapshotName("name", r.Name); err != nil {
			return nil, err
		}
	}
	if r.Replace && r.Name == "" {
		return nil, fault.InvalidField("replace", "is given without a name: there is nothing to replace")
	}
	var kept *sandbox.Snapshot
	_, err := e.verb(ctx, c, ref, snapshotBound, e.takeToWork, func(ctx context.Context, b held) error {
		if err := e.secrets.Refuse(ctx, b.project, b.id, secrets.Plain{"name": {r.Name}}); err != nil {
			return err
		}
		got, err := e.takeSnapshot(ctx, b, core.ActorOf(c), snapshot.Options{Name: r.Name, Replace: r.Replace})
		kept = got
		return err
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// takeSnapshot takes one. The entry is reconciled.
func (e *Engine) takeSnapshot(ctx context.Context, b held, who core.Actor, o snapshot.Options) (*sandbox.Snapshot, error) {
	s := b.record.Load()
	if s == nil {
		return nil, core.NoSandbox(string(b.id))
	}
	if err := archived.Refuse(s, "kept in a snapshot"); err != nil {
		return nil, err
	}
	return e.snapshots.Take(ctx, s, who, o, func(ctx context.Context, parent sandbox.ID, more func(store.Tx) error, ev *sandbox.Event) error {
		return e.commitWith(ctx, b.entry, func(s *sandbox.Sandbox) { s.Parent = parent }, more, ev)
	})
}

// Snapshots returns the snapshots that can be used: not those that are being taken
// or deleted. It is no use of a sandbox.
func (e *Engine) Snapshots(ctx context.Context, c access.Caller, q snapshot.Query) (snapshot.Page, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return snapshot.Page{}, err
	}
	defer e.group.Leave()
	if err := query.Page(q.Limit); err != nil {
		return snapshot.Page{}, err
	}
	return e.snapshots.List(ctx, c.Project, q)
}

// Snapshot returns one: snap is its id or SANDBOX/NAME, or of a sandbox (of) the name of one of its
// snapshots.
func (e *Engine) Snapshot(ctx context.Context, c access.Caller, of, snap string) (*sandbox.Snapshot, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.Leave()
	return e.snapshots.Find(ctx, c.Project, of, snap)
}

// DeleteSnapshot deletes one, named as for Snapshot. What was made of it stays. It
// waits for whoever uses it, and is fault.Conflict when that takes long.
func (e *Engine) DeleteSnapshot(ctx context.Context, c access.Caller, of, snap string) error {
	if err := e.enter(c, access.SandboxesWrite); err != nil {
		return err
	}
	defer e.group.Leave()
	found, err := e.snapshots.Find(ctx, c.Project, of, snap)
	if err != nil {
		return err
	}
	return e.work(ctx, snapshot.Bound, func(ctx context.Context) error { return e.snapshots.Delete(ctx, found, core.ActorOf(c)) }, nil)
}

// ArchiveSnapshot packs a snapshot, named as for Snapshot, and keeps it elsewhere until it is used: see package archived.
func (e *Engine) ArchiveSnapshot(ctx context.Context, c access.Caller, of, snap string) (*sandbox.Snapshot, error) {
	if err := e.enter(c, access.SandboxesWrite); err != nil {
		return nil, err
	}
	defer e.group.Leave()
	found, err := e.snapshots.Find(ctx, c.Project, of, snap)
	if err == nil {
		err = e.work(ctx, archived.Bound, func(ctx context.Context) (err error) {
			found, err = e.archived.ArchiveSnapshot(ctx, found, core.ActorOf(c))
			return err
		}, nil)
	}
	return found, err
}

// ExportSnapshot writes a snapshot, named as for Snapshot, to w as an archive that ImportSnapshot reads, on this server or
// another. It is not deleted meanwhile. What w got before an error is no archive: its end is missing.
func (e *Engine) ExportSnapshot(ctx context.Context, c access.Caller, of, snap string, w io.Writer) error {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return err
	}
	defer e.group.Leave()
	bound, cancel := e.group.Bind(ctx)
	defer cancel()
	kept, release, err := e.snapshots.Hold(bound, c.Project, of, snap)
	if err != nil {
		return err
	}
	defer release()
	err = e.snapshots.Export(bound, kept, w)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return core.Stopping()
	}
	return err
}

// ImportRequest is how an imported snapshot shall be known.
type ImportRequest struct {
	Name string // unique among the project's imported ones; empty: none
}

// ImportSnapshot makes a snapshot of an archive, which may come from anywhere: nothing in it is trusted. It belongs to
// no sandbox. The image that it was made of has to be known here, in exactly that build, else it is fault.NotFound. As
// much is kept of it as a sandbox's disk holds by default, more is fault.TooLarge. More than [archive.MaxImports] of a project at a time are fault.Exhausted.
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
	defer e.group.Leave()
	if err := e.secrets.Refuse(ctx, c.Project, "", secrets.Plain{"name": {q.Name}}); err != nil {
		return nil, err
	}
	bound, cancel := e.group.Bind(ctx)
	defer cancel()
	snap, err := e.snapshots.Import(bound, c.Project, r, q.Name, core.ActorOf(c))
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		err = core.Stopping()
	}
	return snap, err
}
