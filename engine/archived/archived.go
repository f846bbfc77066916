// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package archived packs the disks of stopped sandboxes, and snapshots, into a [blob.Store], and brings them back. It
// knows no verb and no caller: who calls has the sandbox's turn.
//
// Archiving commits its intent, packs what the disk changed of its image, has it kept, and reads it back.
// Only when every byte is there does the record say so, and only then is the disk emptied: a crash
// before that undoes the archive, a crash after it finishes. Bringing back unpacks into a snapshot that
// nobody sees, gives the sandbox its disk, and only then forgets the archive. So there is at each instant
// one whole copy that the record names.
//
// A snapshot is archived and brought back under its own id, by who has it alone. Its record says from the
// last byte of the archive until the disk is back that the archive is the copy: what the driver has of it
// meanwhile is removed, also after a crash.
//
// What is kept elsewhere is not trusted: it is compared with the digest in the record before its end is
// unpacked, what it unpacks to is bounded by what was packed, and drivers take it as they take any archive.
//
// An archive that no record names is on a list of its own (see [store.UnownedArchives]) from before its
// first byte until it is removed.
package archived

import (
	"context"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"sandpit.dev/blob"
	"sandpit.dev/engine/archive"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

const (
	// Bound bounds archiving a disk, and bringing it back.
	Bound = 6 * time.Hour
	// atOnce is how many disks are packed or unpacked at a time: each keeps a processor busy.
	atOnce = 2
	// retryAfter is when a clock tries again to archive a sandbox.
	retryAfter = 10 * time.Minute
	// removeBound bounds the removal of one archive.
	removeBound = 2 * time.Minute
)

// Keeper keeps the archives of an engine. It is safe for concurrent use.
type Keeper struct {
	core      *core.Core
	snapshots *snapshot.Keeper
	blobs     blob.Store // nil: none
	swap      Swap
	turns     chan struct{} // one for each that packs or unpacks
	sweeping  sync.Mutex

	mu    sync.Mutex
	later map[sandbox.ID]time.Time // before that no clock archives the sandbox
}

// Swap exchanges the disk of a sandbox that is down by a snapshot's, or by an empty one. All or nothing;
// one that has no disk gets one.
type Swap func(ctx context.Context, s *sandbox.Sandbox, to sandbox.ID) error

// Commit commits a change of the sandbox's record, what more writes, and events.
type Commit func(ctx context.Context, change func(*sandbox.Sandbox), more func(store.Tx) error, events ...*sandbox.Event) error

// New returns a keeper that keeps archives in blobs; nil: nowhere, and archiving is fault.Unsupported.
func New(c *core.Core, snapshots *snapshot.Keeper, blobs blob.Store, swap Swap) *Keeper {
	k := &Keeper{core: c, snapshots: snapshots, blobs: blobs, swap: swap, turns: make(chan struct{}, atOnce), later: make(map[sandbox.ID]time.Time)}
	snapshots.SetArchive(k)
	return k
}

// Place returns where archives are kept, or fault.Unsupported.
func (k *Keeper) Place() (string, error) {
	if k.blobs == nil {
		return "", fault.New(fault.Unsupported, "this server keeps no archives").
			WithRemedy("have its operator name a directory or a bucket (archive in the configuration)")
	}
	return k.blobs.Place(), nil
}

// Begin waits until there is a turn to pack or unpack; give it back by the function. It is had before
// a sandbox's own, so that nobody waits for that sandbox meanwhile.
func (k *Keeper) Begin(ctx context.Context) (end func(), err error) {
	select {
	case k.turns <- struct{}{}:
		return func() { <-k.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Refuse returns why nothing can be done with the disk of a sandbox that is archived; nil where it is not.
func Refuse(s *sandbox.Sandbox, done string) error {
	if s.State != sandbox.Archived {
		return nil
	}
	return fault.New(fault.State, "the sandbox %s is archived, and cannot be %s before its disk is back", s.Ref(), done).
		WithRemedy("start it (start %s), then ask again", s.Ref())
}

// Archive is the four steps of archiving a sandbox, whose record s says that it is stopped. After an error
// it is stopped as before, or what is left to do is tried again.
func (k *Keeper) Archive(ctx context.Context, s *sandbox.Sandbox, img image.Image, who core.Actor, why string, commit Commit) error {
	place, err := k.Place()
	if err != nil {
		return err
	}
	d, err := core.Driver[runtime.DiskImporter](k.core, s.Runtime, "archives")
	if err != nil {
		return err
	}
	if s.State != sandbox.Stopped {
		return fault.New(fault.State, "the sandbox %s is %s, and only one that is stopped can be archived", s.Ref(), s.State).
			WithRemedy("stop it (stop %s), then archive it", s.Ref())
	}
	a := sandbox.Archive{ID: sandbox.NewID(), Place: place}
	err = commit(ctx, func(s *sandbox.Sandbox) {
		s.State, s.Archive, s.UpdatedAt = sandbox.Archiving, a, k.core.Now()
	}, func(tx store.Tx) error {
		return tx.UnownedArchives().Put(store.UnownedArchive{ID: a.ID, Sandbox: s.ID})
	})
	if err != nil {
		return err
	}
	k.core.Checkpoint("archive.intent")
	packed, err := k.pack(ctx, d, s, img, a, who)
	if err != nil {
		return k.undo(ctx, s, a, who, "archive: "+core.Reason(err), err, commit)
	}
	a.Digest, a.PackedBytes, a.Bytes, a.At = packed.Digest, packed.PackedBytes, packed.Bytes, k.core.Now()
	err = commit(ctx, func(s *sandbox.Sandbox) {
		s.Archive, s.UpdatedAt = a, a.At
	}, func(tx store.Tx) error { return tx.UnownedArchives().Delete(a.ID) })
	if err != nil {
		k.core.Retry(s.ID)
		return err
	}
	k.core.Checkpoint("archive.whole")
	return k.finish(ctx, s, who, why, commit)
}

// pack keeps the disk of a sandbox as an archive, and reads that back.
func (k *Keeper) pack(ctx context.Context, d runtime.DiskImporter, s *sandbox.Sandbox, img image.Image, a sandbox.Archive, who core.Actor) (archive.Packed, error) {
	snap, release, err := k.snapshots.Instant(ctx, s, who, "for the archive of "+string(s.ID))
	if err != nil {
		return archive.Packed{}, err
	}
	defer release()
	meta := archive.Meta{Image: s.Image, ImageDigest: s.ImageDigest, Limits: s.Limits, CreatedAt: k.core.Now()}
	return k.write(ctx, d, snap, meta, img, a, int64(s.Limits.DiskMB)<<20)
}

// write keeps what a snapshot holds as an archive, at most so many bytes, and reads that back.
func (k *Keeper) write(ctx context.Context, d runtime.DiskImporter, snap sandbox.ID, meta archive.Meta, img image.Image, a sandbox.Archive, most int64) (archive.Packed, error) {
	from, to := io.Pipe()
	var packed archive.Packed
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		packed, failed = archive.Pack(ctx, to, meta, img.Root, func(w io.Writer) error {
			return d.ExportDisk(ctx, snap, core.Bounded(w, most))
		})
		_ = to.CloseWithError(failed)
	}()
	err := k.blobs.Put(ctx, string(a.ID), from)
	_ = from.CloseWithError(errors.Join(err, context.Canceled))
	<-done
	if err == nil {
		err = failed
	}
	if err != nil {
		return archive.Packed{}, err
	}
	k.core.Checkpoint("archive.packed")
	r, err := k.blobs.Open(ctx, string(a.ID))
	if err != nil {
		return archive.Packed{}, err
	}
	err = archive.Verify(ctx, r, packed)
	_ = r.Close()
	k.core.Checkpoint("archive.verified")
	return packed, err
}

// finish empties the disk of a sandbox whose archive is whole, and commits that it is archived.
func (k *Keeper) finish(ctx context.Context, s *sandbox.Sandbox, who core.Actor, why string, commit Commit) error {
	if err := k.swap(ctx, s, ""); err != nil {
		k.core.Retry(s.ID)
		return fault.Wrap(fault.Unavailable, err, "the sandbox %s is in the archive, and its disk cannot be emptied now", s.Ref()).
			WithRemedy("the server goes on trying; ask again in a while")
	}
	k.core.Checkpoint("archive.emptied")
	ev := who.Event(sandbox.EventArchived, s, k.core.Now())
	ev.Detail = why
	err := commit(ctx, func(s *sandbox.Sandbox) {
		s.State, s.UpdatedAt = sandbox.Archived, ev.At
		ev.Bytes = s.Archive.PackedBytes
	}, appending(ev), ev)
	if err != nil {
		k.core.Retry(s.ID)
		return err
	}
	k.core.Checkpoint("archive.outcome")
	k.Again(s.ID, time.Time{})
	return nil
}

// undo takes an archive back that failed with err, before its record said that it is whole.
func (k *Keeper) undo(ctx context.Context, s *sandbox.Sandbox, a sandbox.Archive, who core.Actor, detail string, err error, commit Commit) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	ev := who.Event(sandbox.EventFailed, s, k.core.Now())
	ev.OK, ev.Detail = false, sandbox.Clip(detail, sandbox.MaxEventDetail)
	dbErr := commit(ctx, func(s *sandbox.Sandbox) {
		s.State, s.Archive, s.UpdatedAt = sandbox.Stopped, sandbox.Archive{}, ev.At
	}, appending(ev), ev)
	if dbErr != nil {
		k.core.Log.Error("an archive that failed cannot be taken back; it is tried again", "sandbox", s.ID, "error", dbErr)
		k.core.Retry(s.ID)
		return errors.Join(err, dbErr)
	}
	k.core.Checkpoint("archive.undone")
	k.core.Spawn(func(ctx context.Context) { k.removeSoon(ctx, a.ID) })
	return err
}

// Unarchive is the four steps of bringing the disk of a sandbox back, which is archived. It is stopped
// then; after an error it is archived as before.
func (k *Keeper) Unarchive(ctx context.Context, s *sandbox.Sandbox, img image.Image, who core.Actor, commit Commit) error {
	if err := k.reachable(ofSandbox(s)); err != nil {
		return err
	}
	d, err := core.Driver[runtime.DiskImporter](k.core, s.Runtime, "archives")
	if err != nil {
		return err
	}
	if err := k.core.RoomFor(s.Runtime); err != nil {
		return err
	}
	err = commit(ctx, func(s *sandbox.Sandbox) { s.State, s.UpdatedAt = sandbox.Unarchiving, k.core.Now() }, nothing)
	if err != nil {
		return err
	}
	k.core.Checkpoint("unarchive.intent")
	snap := &sandbox.Snapshot{
		ID: sandbox.NewID(), Project: s.Project, Sandbox: s.ID, Parent: s.Parent, Image: s.Image, ImageDigest: s.ImageDigest, Runtime: s.Runtime,
		Limits: s.Limits, State: sandbox.SnapshotCreating, SizeBytes: -1, CreatedAt: k.core.Now(), CreatedBy: who.Name, Detail: "of the archive of " + string(s.ID),
	}
	release, err := k.snapshots.Borrow(ctx, snap, "unarchive.kept", func() error {
		return k.unpack(ctx, ofSandbox(s), img, func(r io.Reader) error {
			_, err := d.ImportDisk(ctx, snap.ID, r, 2*s.Archive.Bytes+64<<20)
			return err
		})
	})
	if err != nil {
		return k.back(ctx, s, who, "unarchive: "+core.Reason(err), err, commit)
	}
	k.core.Checkpoint("unarchive.unpacked")
	err = k.swap(ctx, s, snap.ID)
	release()
	if err != nil {
		return k.back(ctx, s, who, "unarchive: "+core.Reason(err), err, commit)
	}
	k.core.Checkpoint("unarchive.done")
	a := s.Archive
	ev := who.Event(sandbox.EventUnarchived, s, k.core.Now())
	ev.Bytes, ev.Detail = a.PackedBytes, "its disk is back from the "+a.Place
	err = commit(ctx, func(s *sandbox.Sandbox) {
		s.State, s.Archive, s.UpdatedAt = sandbox.Stopped, sandbox.Archive{}, ev.At
	}, func(tx store.Tx) error {
		if err := tx.UnownedArchives().Put(store.UnownedArchive{ID: a.ID, Sandbox: s.ID}); err != nil {
			return err
		}
		return tx.Events().Append(ev)
	}, ev)
	if err != nil {
		k.core.Retry(s.ID)
		return err
	}
	k.core.Checkpoint("unarchive.outcome")
	k.core.Spawn(func(ctx context.Context) { k.removeSoon(ctx, a.ID) })
	return nil
}

// disk is one that is in the archive.
type disk struct {
	of            string // "the sandbox x"
	then          string // what to do once its archive is put back
	image, digest string
	archive       sandbox.Archive
}

func ofSandbox(s *sandbox.Sandbox) disk {
	return disk{"the sandbox " + s.Ref(), "start the sandbox; or delete the sandbox", s.Image, s.ImageDigest, s.Archive}
}

// reachable returns why the archive of a disk cannot be had; nil: it can be tried. Archives may have been
// moved since: whether it is the one is told by its bytes.
func (k *Keeper) reachable(of disk) error {
	if k.blobs == nil {
		return fault.New(fault.State, "the archive of %s is in the %s, and this server keeps no archives", of.of, of.archive.Place).
			WithRemedy("have its operator name that place in the configuration again (archive)")
	}
	return nil
}

// unpack hands what an archive holds to layer.
func (k *Keeper) unpack(ctx context.Context, of disk, img image.Image, layer func(io.Reader) error) error {
	a := of.archive
	r, err := k.blobs.Open(ctx, string(a.ID))
	if err == nil {
		err = archive.Unpack(ctx, r, archive.Packed{Digest: a.Digest, PackedBytes: a.PackedBytes, Bytes: a.Bytes}, img.Root, func(m archive.Meta, r io.Reader) error {
			if m.Image != of.image || m.ImageDigest != of.digest {
				return fault.New(fault.State, "it is of the image %.80s in the build %.80s", m.Image, m.ImageDigest)
			}
			return layer(r)
		})
		_ = r.Close()
	}
	if fault.Is(err, fault.NotFound) && a.Place != k.blobs.Place() {
		return fault.Wrap(fault.State, err, "the archive of %s, %s, was put into the %s, and is not where this server keeps archives, in the %s", of.of, a.ID, a.Place, k.blobs.Place()).
			WithRemedy("have its operator name that place in the configuration again (archive), or move the archives to the new one")
	}
	switch fault.Of(err) {
	case fault.NotFound, fault.State, fault.Invalid, fault.TooLarge:
		return fault.Wrap(fault.State, err, "the archive of %s, %s in the %s, cannot be used: %s", of.of, a.ID, a.Place, core.Reason(err)).
			WithRemedy("put it back there from a copy, then %s", of.then)
	}
	return err
}

// back takes a start back that failed with err: the sandbox is archived, and its disk empty.
func (k *Keeper) back(ctx context.Context, s *sandbox.Sandbox, who core.Actor, detail string, err error, commit Commit) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	if swapErr := k.swap(ctx, s, ""); swapErr != nil {
		k.core.Log.Error("what is left of a disk that could not be brought back cannot be removed; it is tried again", "sandbox", s.ID, "error", swapErr)
		k.core.Retry(s.ID)
		return errors.Join(err, swapErr)
	}
	ev := who.Event(sandbox.EventFailed, s, k.core.Now())
	ev.OK, ev.Detail = false, sandbox.Clip(detail, sandbox.MaxEventDetail)
	dbErr := commit(ctx, func(s *sandbox.Sandbox) { s.State, s.UpdatedAt = sandbox.Archived, ev.At }, appending(ev), ev)
	if dbErr != nil {
		k.core.Retry(s.ID)
		return errors.Join(err, dbErr)
	}
	k.core.Checkpoint("unarchive.undone")
	return err
}

// Reconcile finishes or undoes what was begun with a sandbox that is Archiving or Unarchiving.
func (k *Keeper) Reconcile(ctx context.Context, s *sandbox.Sandbox, why string, commit Commit) error {
	switch {
	case s.State == sandbox.Unarchiving:
		return k.back(ctx, s, core.System, "unarchive: undone; "+why, nil, commit)
	case s.Archive.Whole():
		return k.finish(ctx, s, core.System, why, commit)
	}
	err := k.undo(ctx, s, s.Archive, core.System, "archive: undone; "+why, nil, commit)
	return err
}

// Export writes the disk of a sandbox that is archived as its driver's ExportDisk did.
func (k *Keeper) Export(ctx context.Context, s *sandbox.Sandbox, img image.Image, w io.Writer) error {
	return k.export(ctx, ofSandbox(s), img, w)
}

func (k *Keeper) export(ctx context.Context, of disk, img image.Image, w io.Writer) error {
	if err := k.reachable(of); err != nil {
		return err
	}
	return k.unpack(ctx, of, img, func(r io.Reader) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// Due returns when a clock is to archive a sandbox; zero: never.
func (k *Keeper) Due(s *sandbox.Sandbox) time.Time {
	if s.State != sandbox.Stopped || s.ArchiveAfter <= 0 || k.blobs == nil {
		return time.Time{}
	}
	at := s.StoppedAt.Add(s.ArchiveAfter)
	k.mu.Lock()
	defer k.mu.Unlock()
	if not := k.later[s.ID]; not.After(at) {
		at = not
	}
	return at
}

// Claim reports whether a sandbox is to be archived now, by a clock, and if so has no other clock do it
// for a while.
func (k *Keeper) Claim(s *sandbox.Sandbox) bool {
	at := k.core.Now()
	if due := k.Due(s); due.IsZero() || due.After(at) {
		return false
	}
	k.Again(s.ID, at.Add(retryAfter))
	return true
}

// Again has no clock archive a sandbox before a time; zero: no matter when.
func (k *Keeper) Again(id sandbox.ID, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.core.Now()
	maps.DeleteFunc(k.later, func(_ sandbox.ID, t time.Time) bool { return t.Before(now) })
	delete(k.later, id)
	if !at.IsZero() {
		k.later[id] = at
	}
}

// SweepBehind removes the archives that no record names, in a goroutine of its own. One at a time.
func (k *Keeper) SweepBehind() {
	if k.blobs == nil || !k.sweeping.TryLock() {
		return
	}
	k.core.Spawn(func(ctx context.Context) {
		defer k.sweeping.Unlock()
		if err := k.sweep(ctx); err != nil && ctx.Err() == nil {
			k.core.Log.Error("archives of no more use cannot be removed now; it is tried again", "error", err)
		}
	})
}

func (k *Keeper) sweep(ctx context.Context) error {
	var gone []sandbox.ID
	err := k.core.Store.View(ctx, func(tx store.Tx) error {
		all, err := tx.UnownedArchives().All()
		if err != nil {
			return err
		}
		for _, u := range all {
			s, err := tx.Sandboxes().Get(u.Sandbox)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
			if err == nil && s.Archive.ID == u.ID {
				continue // it is being written
			}
			snap, err := tx.Snapshots().Get(u.Sandbox)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
			if err == nil && snap.Archive.ID == u.ID {
				continue
			}
			gone = append(gone, u.ID)
		}
		return nil
	})
	for _, id := range gone {
		if err == nil {
			err = k.remove(ctx, id)
		}
	}
	return err
}

func (k *Keeper) removeSoon(ctx context.Context, id sandbox.ID) {
	if err := k.remove(ctx, id); err != nil && ctx.Err() == nil {
		k.core.Log.Warn("an archive of no more use cannot be removed now; it is tried again", "archive", id, "error", err)
	}
}

// remove removes an archive that no record names, once nobody reads it.
func (k *Keeper) remove(ctx context.Context, id sandbox.ID) error {
	give, err := k.core.Holds.OwnSoon(ctx, id)
	if err != nil {
		return err
	}
	defer give()
	bound, cancel := context.WithTimeout(ctx, removeBound)
	defer cancel()
	if err := k.blobs.Remove(bound, string(id)); err != nil {
		return err
	}
	k.core.Checkpoint("unarchive.removed")
	return k.core.Store.Update(ctx, func(tx store.Tx) error { return tx.UnownedArchives().Delete(id) })
}

func nothing(store.Tx) error { return nil }

func appending(ev *sandbox.Event) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.Events().Append(ev) }
}
