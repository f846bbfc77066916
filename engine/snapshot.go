// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
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
	_, err := e.verb(ctx, c, ref, snapshotBound, e.takeToWork, func(ctx context.Context, b *entry) error {
		if err := e.refuseValues(ctx, b.project, b.id, onRecord{"name": {r.Name}}); err != nil {
			return err
		}
		got, err := e.takeSnapshot(ctx, b, core.ActorOf(c), snapshotOptions{name: r.Name, replace: r.Replace})
		kept = got
		return err
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// snapshotOptions is how a snapshot is to be taken.
type snapshotOptions struct {
	name    string
	replace bool
	auto    bool
	detail  string // of the record, and of the event
}

// snapshotOf is the record of a snapshot that is about to be taken.
func (e *Engine) snapshotOf(s *sandbox.Sandbox, who core.Actor) *sandbox.Snapshot {
	return &sandbox.Snapshot{
		ID: sandbox.NewID(), Project: s.Project, Sandbox: s.ID, Parent: s.Parent,
		Image: s.Image, ImageDigest: s.ImageDigest, Runtime: s.Runtime, Limits: s.Limits, Env: maps.Clone(s.Env),
		State: sandbox.SnapshotCreating, SizeBytes: -1, CreatedAt: e.now(), CreatedBy: who.Name,
	}
}

// takeSnapshot is the four steps of a snapshot. The caller has the turn, and the entry is reconciled.
func (e *Engine) takeSnapshot(ctx context.Context, b *entry, who core.Actor, k snapshotOptions) (*sandbox.Snapshot, error) {
	s := b.record.Load()
	if s == nil {
		return nil, noSandbox(string(b.id))
	}
	d, err := core.Driver[runtime.Snapshotter](e.core, s.Runtime, "snapshots")
	if err != nil {
		return nil, err
	}
	snap := e.snapshotOf(s, who)
	snap.Auto, snap.Detail = k.auto, k.detail
	if !k.replace {
		snap.Name = k.name
	}
	// Nobody but the repair looks at it before it is ready, and that has to wait.
	give, err := e.holds.Own(ctx, snap.ID)
	if err != nil {
		return nil, err
	}
	defer give()
	err = e.store.Update(ctx, func(tx store.Tx) error { return insertSnapshot(tx, snap, k) })
	if err != nil {
		return nil, err
	}
	e.checkpoint("snapshot.intent")
	got, err := d.Snapshot(ctx, b.id, snap.ID)
	e.checkpoint("snapshot.done")
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			err = noDisk(b.id, err)
		}
		return nil, e.undoSnapshot(ctx, snap, who, err)
	}
	old, err := e.commitSnapshot(ctx, b, who, snap, got, k)
	if err != nil {
		return nil, e.undoSnapshot(ctx, snap, who, err)
	}
	e.checkpoint("snapshot.outcome")
	if len(old) > 0 {
		e.group.spawn(func(ctx context.Context) { e.discardAll(ctx, old, who) })
	}
	return snap, nil
}

func noDisk(id sandbox.ID, err error) error {
	return fault.Wrap(fault.State, err, "the disk of the sandbox %s is gone from this host", id).
		WithRemedy("give it an empty disk (reset), roll it back to a snapshot, or delete it")
}

// insertSnapshot writes the intent, if there is room and the name is free.
func insertSnapshot(tx store.Tx, snap *sandbox.Snapshot, k snapshotOptions) error {
	most := sandbox.MaxSnapshots
	if k.name != "" {
		old, err := tx.Snapshots().ByName(snap.Sandbox, k.name)
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			return err
		case !k.replace:
			return nameTaken(old)
		default:
			most++ // the old one goes
		}
	}
	n, err := tx.Snapshots().Count(store.SnapshotQuery{Project: snap.Project, Sandbox: snap.Sandbox})
	if err != nil {
		return err
	}
	if n >= most {
		return fault.New(fault.Exhausted, "the sandbox %s has %d snapshots already, checkpoints included; there can be %d", snap.Sandbox, n, sandbox.MaxSnapshots).
			WithRemedy("delete some that are not needed any more")
	}
	return tx.Snapshots().Insert(snap)
}

func nameTaken(old *sandbox.Snapshot) error {
	return fault.New(fault.Exists, "the sandbox %s has a snapshot named %q already, %s", old.Sandbox, old.Name, old.ID).
		WithRemedy("choose another name, delete that one, or say replace")
}

// commitSnapshot commits the outcome: the snapshot is ready, the sandbox's disk descends from
// it, and what had its name, or what it has one checkpoint too many by, is to be deleted.
func (e *Engine) commitSnapshot(ctx context.Context, b *entry, who core.Actor, snap *sandbox.Snapshot, got runtime.Snapshot, k snapshotOptions) (old []*sandbox.Snapshot, err error) {
	ready := *snap
	ready.State, ready.Name, ready.SizeBytes = sandbox.SnapshotReady, k.name, got.SizeBytes
	ev := snapshotEvent(who, sandbox.EventSnapshot, &ready, e.now(), k.detail)
	err = e.commitWith(ctx, b, func(s *sandbox.Sandbox) { s.Parent = snap.ID }, func(tx store.Tx) error {
		old = nil
		if k.replace {
			if old, err = displace(tx, &ready); err != nil {
				return err
			}
		}
		if err := tx.Snapshots().Update(&ready); err != nil {
			return err
		}
		if k.auto {
			if old, err = prune(tx, &ready); err != nil {
				return err
			}
		}
		return tx.Events().Append(ev)
	}, ev)
	if err != nil {
		return nil, err
	}
	*snap = ready
	return old, nil
}

// displace marks the snapshot that has the name of a new one, if there is one still.
func displace(tx store.Tx, by *sandbox.Snapshot) ([]*sandbox.Snapshot, error) {
	old, err := tx.Snapshots().ByName(by.Sandbox, by.Name)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []*sandbox.Snapshot{old}, markDeleting(tx, old, "replaced by "+string(by.ID))
}

// undoSnapshot undoes a snapshot that failed with err, and gives err. The caller has it alone.
func (e *Engine) undoSnapshot(ctx context.Context, snap *sandbox.Snapshot, who core.Actor, err error) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	var ev *sandbox.Event // of a checkpoint, it is keepChanges's
	if !snap.Auto {
		ev = snapshotEvent(who, sandbox.EventFailed, snap, e.now(), "")
		ev.OK, ev.ProcessID, ev.Detail = false, "", "snapshot: "+core.Reason(err)
	}
	if undoErr := e.eraseSnapshot(ctx, snap, ev); undoErr != nil {
		e.log.Error("what is left of a snapshot that failed cannot be removed; it is tried again", "snapshot", snap.ID, "error", undoErr)
		e.retry(snap.ID)
	}
	return err
}

// snapshotEvent is an event of a snapshot; its ProcessID is the snapshot's id.
func snapshotEvent(who core.Actor, t sandbox.EventType, snap *sandbox.Snapshot, at time.Time, more string) *sandbox.Event {
	ev := who.Event(t, &sandbox.Sandbox{ID: snap.Sandbox, Project: snap.Project}, at)
	ev.ProcessID = string(snap.ID)
	ev.Detail = describe(snap)
	if more != "" {
		ev.Detail += "; " + more
	}
	ev.Detail = sandbox.Clip(ev.Detail, sandbox.MaxEventDetail)
	return ev
}

// describe names a snapshot for people.
func describe(snap *sandbox.Snapshot) string {
	switch {
	case snap.Name != "":
		return fmt.Sprintf("%s, named %q", snap.ID, snap.Name)
	case snap.Auto:
		return fmt.Sprintf("%s, a checkpoint", snap.ID)
	}
	return string(snap.ID)
}
