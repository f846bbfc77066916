// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package snapshot takes, finds, writes out, reads in and deletes snapshots: the driver's half and
// the records. It knows no verb and no caller. That nothing exchanges or deletes a sandbox's disk
// while a snapshot of it is taken is up to who asks for it.
//
// Their records are intents, too: creating is committed before the driver's work and
// undone by a repair, deleting before the removal and finished by one. What cannot be
// finished at once is tried again by the clock, under its own id. Callers see neither.
// Only Snapshot.Detail still says what one that is being deleted was called: the name
// is free from the intent on, which is how a snapshot replaces another of its name.
//
// The instant that forks are made of is a record that stays creating until it is removed.
// Forks of one call have one intent and one outcome together, so that a crash leaves
// all of them or none.
//
// A sandbox that is Restoring names in its record what it is to become. That snapshot is
// held until the record says something else, also by a server that cannot finish it.
//
// A checkpoint is taken between the end of a command and the answer to its caller, in the
// sandbox's turn, if the sandbox did not go down meanwhile: its disk may be another then.
//
// Their events have their ids in ProcessID: by that the janitor, and the repair, know what
// is this store's.
package snapshot

import (
	"context"
	"fmt"
	"maps"

	"sandpit.dev/engine/archive"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Images is what a keeper needs of the images.
type Images interface {
	FindDigest(name, digest string) (image.Image, error)
}

// Keeper keeps the snapshots of an engine. It is safe for concurrent use.
type Keeper struct {
	core    *core.Core
	images  Images
	most    int64 // bytes that are kept of an archive
	imports *archive.Queue
	archive Archive
}

// Archive is what brings snapshots back from the archive.
type Archive interface {
	// Back brings the disk of an archived snapshot back. It may go on behind an answer that is an error.
	Back(ctx context.Context, id sandbox.ID) error
	// ReconcileSnapshot finishes or undoes what was begun with an archive of a snapshot, which the caller has alone.
	ReconcileSnapshot(ctx context.Context, snap *sandbox.Snapshot) error
}

// SetArchive says who brings snapshots back. It is called before anything else.
func (k *Keeper) SetArchive(a Archive) { k.archive = a }

func (k *Keeper) back(ctx context.Context, id sandbox.ID) error { return k.archive.Back(ctx, id) }

// Image returns the image that a disk lies over. Without exactly that one the disk is of no use.
func (k *Keeper) Image(name, digest string) (image.Image, error) {
	img, err := k.images.FindDigest(name, digest)
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(fault.State, err, "the image %s, in the build %s, is gone from this host", name, digest).
			WithRemedy("put the server's images back; another build of it has another digest and does not fit")
	}
	return img, err
}

// New returns a keeper of snapshots, which keeps at most so many bytes of an archive.
func New(c *core.Core, images Images, most int64) *Keeper {
	return &Keeper{core: c, images: images, most: most, imports: archive.NewQueue()}
}

// Driver returns the driver of a runtime, where it keeps snapshots.
func (k *Keeper) Driver(name string) (runtime.Snapshotter, error) {
	return core.Driver[runtime.Snapshotter](k.core, name, "snapshots")
}

// Options is how a snapshot is to be taken.
type Options struct {
	Name    string // see sandbox.CheckSnapshotName; empty: none
	Replace bool   // the snapshot that has the name makes room, once this one is kept
	Auto    bool   // it is a checkpoint
	Detail  string // of the record, and of the event
}

// Commit commits the outcome of a snapshot together with the change of its sandbox's record, whose
// disk descends from it then: more and ev are as in a verb's commit.
type Commit func(ctx context.Context, parent sandbox.ID, more func(store.Tx) error, ev *sandbox.Event) error

// Take is the four steps of a snapshot of a sandbox's disk. A name that another of the sandbox's
// snapshots has is fault.Exists unless it is to be replaced, more than sandbox.MaxSnapshots are
// fault.Exhausted.
func (k *Keeper) Take(ctx context.Context, s *sandbox.Sandbox, who core.Actor, o Options, commit Commit) (*sandbox.Snapshot, error) {
	d, err := k.Driver(s.Runtime)
	if err != nil {
		return nil, err
	}
	snap := k.of(s, who)
	snap.Auto, snap.Detail = o.Auto, o.Detail
	if !o.Replace {
		snap.Name = o.Name
	}
	// Nobody but the repair looks at it before it is ready, and that has to wait.
	give, err := k.core.Holds.Own(ctx, snap.ID)
	if err != nil {
		return nil, err
	}
	defer give()
	if err := k.core.Store.Update(ctx, func(tx store.Tx) error { return insert(tx, snap, o) }); err != nil {
		return nil, err
	}
	k.core.Checkpoint("snapshot.intent")
	got, err := d.Snapshot(ctx, s.ID, snap.ID)
	k.core.Checkpoint("snapshot.done")
	if fault.Is(err, fault.NotFound) {
		err = core.NoDisk(s.ID, err)
	}
	if err != nil {
		return nil, k.undo(ctx, snap, who, err)
	}
	ready := *snap
	ready.State, ready.Name, ready.SizeBytes = sandbox.SnapshotReady, o.Name, got.SizeBytes
	old, err := k.commit(ctx, &ready, who, o, commit)
	if err != nil {
		return nil, k.undo(ctx, snap, who, err)
	}
	k.core.Checkpoint("snapshot.outcome")
	if len(old) > 0 {
		k.core.Spawn(func(ctx context.Context) { k.DiscardAll(ctx, old, who) })
	}
	return &ready, nil
}

// of is the record of a snapshot that is about to be taken.
func (k *Keeper) of(s *sandbox.Sandbox, who core.Actor) *sandbox.Snapshot {
	return &sandbox.Snapshot{
		ID: sandbox.NewID(), Project: s.Project, Sandbox: s.ID, Parent: s.Parent,
		Image: s.Image, ImageDigest: s.ImageDigest, Runtime: s.Runtime, Limits: s.Limits, Env: maps.Clone(s.Env), Account: s.Account,
		State: sandbox.SnapshotCreating, SizeBytes: -1, CreatedAt: k.core.Now(), CreatedBy: who.Name,
	}
}

// insert writes the intent, if there is room and the name is free.
func insert(tx store.Tx, snap *sandbox.Snapshot, o Options) error {
	most := sandbox.MaxSnapshots
	if o.Name != "" {
		old, err := tx.Snapshots().ByName(snap.Sandbox, o.Name)
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			return err
		case !o.Replace:
			return fault.New(fault.Exists, "the sandbox %s has a snapshot named %q already, %s", old.Sandbox, old.Name, old.ID).
				WithRemedy("choose another name, delete that one, or say replace")
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

// commit commits the outcome: the snapshot is ready, the sandbox's disk descends from
// it, and what had its name, or what it has one checkpoint too many by, is to be deleted.
func (k *Keeper) commit(ctx context.Context, ready *sandbox.Snapshot, who core.Actor, o Options, commit Commit) (old []*sandbox.Snapshot, err error) {
	ev := k.event(sandbox.EventSnapshot, ready, who, o.Detail)
	err = commit(ctx, ready.ID, func(tx store.Tx) error {
		old = nil
		if o.Replace {
			if old, err = displace(tx, ready); err != nil {
				return err
			}
		}
		if err := tx.Snapshots().Update(ready); err != nil {
			return err
		}
		if o.Auto {
			if old, err = prune(tx, ready); err != nil {
				return err
			}
		}
		return tx.Events().Append(ev)
	}, ev)
	return old, err
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

// prune marks the oldest checkpoints of a sandbox above what it keeps, and returns them.
func prune(tx store.Tx, of *sandbox.Snapshot) ([]*sandbox.Snapshot, error) {
	auto := true
	q := store.SnapshotQuery{
		Project: of.Project, Sandbox: of.Sandbox, Auto: &auto,
		States: []sandbox.SnapshotState{sandbox.SnapshotReady}, Oldest: true, Limit: store.MaxPage,
	}
	n, err := tx.Snapshots().Count(q)
	if err != nil || n <= sandbox.KeptCheckpoints {
		return nil, err
	}
	q.Limit = min(n-sandbox.KeptCheckpoints, store.MaxPage)
	old, _, err := tx.Snapshots().List(q)
	if err != nil {
		return nil, err
	}
	for _, snap := range old {
		if err := markDeleting(tx, snap, fmt.Sprintf("%d newer checkpoints are kept", sandbox.KeptCheckpoints)); err != nil {
			return nil, err
		}
	}
	return old, nil
}

// undo undoes a snapshot that failed with err, and returns err. The caller has it alone.
func (k *Keeper) undo(ctx context.Context, snap *sandbox.Snapshot, who core.Actor, err error) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	var ev *sandbox.Event // of a checkpoint, it is who asked for that who tells
	if !snap.Auto {
		ev = k.event(sandbox.EventFailed, snap, who, "")
		ev.OK, ev.ProcessID, ev.Detail = false, "", "snapshot: "+core.Reason(err)
	}
	if undoErr := k.erase(ctx, snap, ev); undoErr != nil {
		k.core.Log.Error("what is left of a snapshot that failed cannot be removed; it is tried again", "snapshot", snap.ID, "error", undoErr)
		k.core.Retry(snap.ID)
	}
	return err
}

// Borrow keeps a disk for as long as the caller needs it, by a snapshot that take takes. Its record
// is an intent for as long as it is there: nobody sees it, and a crash leaves nothing. intent is
// the name of the checkpoint before take.
func (k *Keeper) Borrow(ctx context.Context, snap *sandbox.Snapshot, intent string, take func() error) (release func(), err error) {
	give, err := k.core.Holds.Own(ctx, snap.ID)
	if err != nil {
		return nil, err
	}
	if err := k.core.Store.Update(ctx, func(tx store.Tx) error { return tx.Snapshots().Insert(snap) }); err != nil {
		give()
		return nil, err
	}
	release = func() {
		defer give()
		actx, cancel := core.Aside(ctx)
		defer cancel()
		if err := k.erase(actx, snap, nil); err != nil {
			k.core.Log.Error("a snapshot that is needed no more cannot be removed; it is tried again", "snapshot", snap.ID, "detail", snap.Detail, "error", err)
			k.core.Retry(snap.ID)
		}
	}
	k.core.Checkpoint(intent)
	if err := take(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// Instant borrows the disk of a sandbox as it is now, for what detail says.
func (k *Keeper) Instant(ctx context.Context, s *sandbox.Sandbox, who core.Actor, detail string) (sandbox.ID, func(), error) {
	d, err := k.Driver(s.Runtime)
	if err != nil {
		return "", nil, err
	}
	snap := k.of(s, who)
	snap.Detail = detail
	release, err := k.Borrow(ctx, snap, "fork.intent", func() error {
		_, err := d.Snapshot(ctx, s.ID, snap.ID)
		if fault.Is(err, fault.NotFound) {
			err = core.NoDisk(s.ID, err)
		}
		return err
	})
	if err != nil {
		return "", nil, err
	}
	k.core.Checkpoint("fork.kept")
	return snap.ID, release, nil
}

// event is an event of a snapshot; its ProcessID is the snapshot's id.
func (k *Keeper) event(t sandbox.EventType, snap *sandbox.Snapshot, who core.Actor, more string) *sandbox.Event {
	ev := who.Event(t, &sandbox.Sandbox{ID: snap.Sandbox, Project: snap.Project}, k.core.Now())
	ev.ProcessID = string(snap.ID)
	ev.Detail = Describe(snap)
	if more != "" {
		ev.Detail += "; " + more
	}
	ev.Detail = sandbox.Clip(ev.Detail, sandbox.MaxEventDetail)
	return ev
}

// Describe names a snapshot for people.
func Describe(snap *sandbox.Snapshot) string {
	switch {
	case snap.Name != "":
		return fmt.Sprintf("%s, named %q", snap.ID, snap.Name)
	case snap.Auto:
		return fmt.Sprintf("%s, a checkpoint", snap.ID)
	}
	return string(snap.ID)
}

// Event is an event of a snapshot; more is added to what it says.
func (k *Keeper) Event(t sandbox.EventType, snap *sandbox.Snapshot, who core.Actor, more string) *sandbox.Event {
	return k.event(t, snap, who, more)
}

// Known returns the runtimes of all records by their ids, and those that are intents, or archived.
func (k *Keeper) Known(ctx context.Context) (known map[sandbox.ID]string, intents []sandbox.ID, err error) {
	known = make(map[sandbox.ID]string)
	q := store.SnapshotQuery{Limit: store.MaxPage, Oldest: true}
	for {
		var page []*sandbox.Snapshot
		err := k.core.Store.View(ctx, func(tx store.Tx) (err error) {
			page, q.Cursor, err = tx.Snapshots().List(q)
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("reading the snapshots of the last run: %w", err)
		}
		for _, snap := range page {
			known[snap.ID] = snap.Runtime
			if snap.State != sandbox.SnapshotReady || snap.Archive != (sandbox.Archive{}) {
				intents = append(intents, snap.ID)
			}
		}
		if q.Cursor == "" {
			return known, intents, nil
		}
	}
}

// ReconcileSnapshot finishes or undoes what was begun with a snapshot, if anything was. The caller has it
// alone. One that is not there is fault.NotFound.
func (k *Keeper) Reconcile(ctx context.Context, id sandbox.ID) error {
	var snap *sandbox.Snapshot
	err := k.core.Store.View(ctx, func(tx store.Tx) (err error) {
		snap, err = tx.Snapshots().Get(id)
		return err
	})
	switch {
	case err != nil:
		return err
	case snap.State == sandbox.SnapshotCreating:
		return k.erase(ctx, snap, nil)
	case snap.State == sandbox.SnapshotDeleting:
		return k.discard(ctx, snap, core.System)
	case snap.Archive != (sandbox.Archive{}):
		return k.archive.ReconcileSnapshot(ctx, snap)
	}
	return nil
}
