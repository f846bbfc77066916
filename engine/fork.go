// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sandpit.dev/access"
	"sandpit.dev/engine/archived"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// MaxForks is how many forks one call makes at most.
const MaxForks = 100

// forksAtOnce bounds how many of them are made at a time.
const forksAtOnce = 8

// forkBound bounds a fork: a host that cannot share what two disks have in common
// copies each.
const forkBound = 10 * time.Minute

// ForkRequest is what forks shall be.
type ForkRequest struct {
	Count    int               // 1 to MaxForks; zero: 1
	From     string            // a snapshot, named as for Rollback; empty: the sandbox as it is now
	Key      string            // of the one fork; empty: none
	Metadata map[string]string // nil: the sandbox's own
}

// Fork makes sandboxes that begin with the disk of another as it is now, or of a
// snapshot, and with its image, limits, variables, clocks and volumes. They run, have
// ids of their own, and none of its processes. All or nothing; the sandbox itself goes
// on, or stays stopped.
func (e *Engine) Fork(ctx context.Context, c access.Caller, ref string, r ForkRequest) ([]*sandbox.Sandbox, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := e.enterWork(c, access.SandboxesWrite); err != nil {
		return nil, err
	}
	defer e.group.Leave()
	give := func() {}
	if r.Key != "" {
		var err error
		if give, err = e.awaitKey(ctx, name{c.Project, r.Key}); err != nil {
			return nil, err
		}
	}
	b, err := e.find(ctx, c, ref)
	if err != nil {
		give()
		return nil, err
	}
	b.touch(e.now(), actCall)
	var made []*sandbox.Sandbox
	err = e.work(ctx, forkBound, func(ctx context.Context) error {
		defer give()
		defer e.release(b)
		got, err := e.fork(ctx, b, core.ActorOf(c), r)
		made = got
		return err
	}, func(ctx context.Context) {
		for _, s := range made {
			if s.Key == "" { // nobody has learnt its id
				e.abandon(ctx, s.ID, wentAway)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

func (r *ForkRequest) check() error {
	var k check.Fields
	if r.Count == 0 {
		r.Count = 1
	}
	if r.Count < 1 || r.Count > MaxForks {
		k.Bad("count", "%d is outside 1 to %d", r.Count, MaxForks)
	}
	if r.Key != "" {
		k.Key(r.Key)
		if r.Count > 1 {
			k.Bad("key", "is given for %d forks; a key names one", r.Count)
		}
	}
	switch r.From {
	case snapshot.PointNow:
		r.From = ""
	case snapshot.PointBase, snapshot.PointFresh:
		k.Bad("from", "%q is the image: create a sandbox of it instead", r.From)
	}
	k.Metadata("metadata", r.Metadata)
	return k.Err()
}

// fork takes the disk as it is, then makes the forks of it. The sandbox's turn is had
// for the first of the two alone.
func (e *Engine) fork(ctx context.Context, b *entry, who core.Actor, r ForkRequest) ([]*sandbox.Sandbox, error) {
	defer e.pools.Begin()()
	own, err := e.take(ctx, b)
	if err != nil {
		return nil, err
	}
	give := sync.OnceFunc(own.release)
	defer give()
	if s := b.record.Load(); s != nil { // one that was deleted meanwhile has none
		if err := s.Limits.CheckUpTo(e.settings.Load().Most); err != nil { // it is of a time of other bounds
			return nil, err
		}
	}
	o, err := e.origin(ctx, b, who, r)
	if err != nil {
		return nil, err
	}
	defer o.release()
	if o.disk != "" {
		give()
	}
	o.taken = give
	return e.spread(ctx, who, r, o)
}

// origin is what forks are made of.
type origin struct {
	parent  *sandbox.Sandbox
	img     image.Image
	secrets []secrets.Secret // its own; forks have them too
	disk    sandbox.ID       // the snapshot that their disks are copies of; zero: the one fork's is of the parent's own
	taken   func()           // to be called when the parent's own is not needed any more
	descend sandbox.ID       // what their records call their disk's parent
	what    string
	release func()
}

func (e *Engine) origin(ctx context.Context, b *entry, who core.Actor, r ForkRequest) (*origin, error) {
	s := b.record.Load()
	if s == nil {
		return nil, core.NoSandbox(string(b.id))
	}
	kept := secrets.Plain{"key": {r.Key}}
	kept.Add("metadata", r.Metadata)
	if err := e.secrets.Refuse(ctx, s.Project, s.ID, kept); err != nil {
		return nil, err
	}
	d, err := e.snapshots.Driver(s.Runtime)
	if err != nil {
		return nil, err
	}
	img, err := e.imageKept(s.Image, s.ImageDigest)
	if err != nil {
		return nil, err
	}
	o := &origin{parent: s, img: img}
	if o.secrets, err = e.secrets.Read(ctx, s.Project, s.ID); err != nil {
		return nil, err
	}
	if r.From != "" {
		snap, release, err := e.snapshots.Hold(ctx, s.Project, string(s.ID), r.From)
		if err != nil {
			return nil, err
		}
		if err := snapshot.Fits(s, snap); err != nil {
			release()
			return nil, err
		}
		o.disk, o.descend, o.release = snap.ID, snap.ID, release
		o.what = fmt.Sprintf("forked from %s at the snapshot %s", s.ID, snapshot.Describe(snap))
		return o, nil
	}
	if err := archived.Refuse(s, "forked"); err != nil {
		return nil, err
	}
	o.what, o.descend = "forked from "+string(s.ID), s.Parent
	if _, ok := d.(runtime.Forker); ok && r.Count == 1 {
		o.release = func() {}
		if _, err := e.open(ctx, s); fault.Is(err, fault.NotFound) {
			return nil, core.NoDisk(s.ID, err)
		} else if err != nil {
			return nil, err
		}
		return o, nil
	}
	o.disk, o.release, err = e.snapshots.Instant(ctx, s, who, "for forks of "+string(s.ID))
	return o, err
}

// spread makes the forks: the intents of all in one commit, then all of them, then
// the outcomes of all in one commit.
func (e *Engine) spread(ctx context.Context, who core.Actor, r ForkRequest, o *origin) ([]*sandbox.Sandbox, error) {
	f := &forks{e: e, who: who, o: o, insts: make([]runtime.Instance, r.Count)}
	for range r.Count {
		b := e.entryOf(sandbox.NewID())
		defer e.release(b)
		own, err := b.take(ctx) // nobody else knows it yet
		if err != nil {
			return nil, err
		}
		defer own.release()
		f.boxes = append(f.boxes, own)
	}
	if err := f.intend(ctx, r); err != nil {
		return nil, err
	}
	e.core.Checkpoint("fork.intents")
	_, err := e.images.FindDigest(o.img.Name, o.img.Digest) // whoever deletes it may not have seen the records
	if err == nil {
		err = f.make(ctx)
	}
	e.core.Checkpoint("fork.done")
	if err == nil {
		err = f.outcome(ctx)
	}
	if err != nil {
		return nil, f.undo(ctx, err)
	}
	e.core.Checkpoint("fork.outcome")
	made := make([]*sandbox.Sandbox, len(f.boxes))
	for i, b := range f.boxes {
		e.beginSession(b, e.newLive(b.entry, f.insts[i], o.img))
		if made[i], err = b.current(); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// forks are those of one call.
type forks struct {
	e     *Engine
	who   core.Actor
	o     *origin
	boxes []held
	insts []runtime.Instance // of entries; nil: not made
}

// record is a fork's own.
func (f *forks) record(id sandbox.ID, r ForkRequest, at time.Time) *sandbox.Sandbox {
	p := f.o.parent
	s := &sandbox.Sandbox{
		ID: id, Project: p.Project, Key: r.Key,
		Image: p.Image, ImageDigest: p.ImageDigest, AskedImage: p.AskedImage, Runtime: p.Runtime,
		Limits: p.Limits, Env: maps.Clone(p.Env), Account: p.Account, Metadata: maps.Clone(p.Metadata), Mounts: slices.Clone(p.Mounts), Network: f.e.settings.Load().Network.Bounded(p.Network), Template: p.Template, Clocks: p.Clocks, Sudo: p.Sudo, Previews: sandbox.Previews{Host: p.Previews.Host},
		State: sandbox.Creating, Parent: f.o.descend, ForkedFrom: p.ID,
		CreatedAt: at, UpdatedAt: at, LastActivity: at,
	}
	if r.Metadata != nil {
		s.Metadata = maps.Clone(r.Metadata)
	}
	if r.From == "" { // a snapshot's disk may have other ones
		s.Skills = slices.Clone(p.Skills)
	}
	return s
}

func (f *forks) intend(ctx context.Context, r ForkRequest) error {
	at := f.e.now()
	records := make([]*sandbox.Sandbox, len(f.boxes))
	events := make([]*sandbox.Event, len(f.boxes))
	for i, b := range f.boxes {
		records[i] = f.record(b.id, r, at)
		events[i] = f.who.Event(sandbox.EventCreated, records[i], at)
		events[i].Detail = fmt.Sprintf("image %s, %s", f.o.img.Name, f.o.what) + secrets.Words(f.o.secrets)
		b.secrets.Fill(secrets.OfNew(records[i], f.o.secrets))
	}
	var secretEvents []*sandbox.Event
	err := f.commit(ctx, func(tx store.Tx) error {
		for _, s := range records {
			if err := volume.Mountable(tx, s.Project, s.Mounts); err != nil {
				return err
			}
			if err := tx.Sandboxes().Insert(s); err != nil {
				return err
			}
		}
		if err := core.AppendAll(tx, events); err != nil {
			return err
		}
		for _, s := range records {
			evs, err := f.e.secrets.PutAll(tx, secrets.OfNew(s, f.o.secrets), f.who)
			if err != nil {
				return err
			}
			secretEvents = append(secretEvents, evs...)
		}
		return nil
	})
	if fault.Is(err, fault.Exists) {
		return fault.Wrap(fault.Exists, err, "the key %q belongs to a sandbox already", r.Key).
			WithRemedy("use another key, or fork without one")
	}
	if err != nil {
		return err
	}
	for i, b := range f.boxes {
		f.e.cacheRecord(b.entry, records[i])
		f.e.core.Metrics.Moved("", records[i].State)
	}
	f.e.core.Metrics.Happened(append(secretEvents, events...))
	return nil
}

// commit is one transaction about all of them. Nobody else has commitMu of several.
func (f *forks) commit(ctx context.Context, fn func(store.Tx) error) error {
	for _, b := range f.boxes {
		b.commitMu.Lock()
		defer b.commitMu.Unlock()
	}
	return f.e.core.Store.Update(ctx, fn)
}

// make has the driver make them, several at a time; the first that fails ends it.
func (f *forks) make(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(forksAtOnce)
	d := f.e.core.Runtimes[f.o.parent.Runtime]
	for i, b := range f.boxes {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			made := core.Spec(b.record.Load(), f.o.img)
			made.From = f.o.disk
			var err error
			if made.From != "" {
				f.insts[i], err = d.Create(ctx, made)
			} else {
				f.insts[i], err = d.(runtime.Forker).Fork(ctx, f.o.parent.ID, made, f.o.taken)
			}
			if err == nil {
				err = f.e.giveAgain(ctx, b.record.Load(), f.insts[i])
			}
			return err
		})
	}
	return g.Wait()
}

func (f *forks) outcome(ctx context.Context) error {
	at := f.e.now()
	next := make([]*sandbox.Sandbox, len(f.boxes))
	events := make([]*sandbox.Event, len(f.boxes))
	err := f.commit(ctx, func(tx store.Tx) error {
		for i, b := range f.boxes {
			s := *b.record.Load()
			s.State, s.Handle, s.StartedAt, s.RunningSince, s.UpdatedAt = sandbox.Running, f.insts[i].Handle().Data, at, at, at
			if err := tx.Sandboxes().Update(&s); err != nil {
				return err
			}
			next[i], events[i] = &s, f.who.Event(sandbox.EventStarted, &s, at)
		}
		return core.AppendAll(tx, events)
	})
	if err != nil {
		for _, b := range f.boxes {
			b.setStale()
		}
		return err
	}
	for i, b := range f.boxes {
		b.record.Store(next[i])
		f.e.core.Metrics.Moved(sandbox.Creating, sandbox.Running)
	}
	f.e.core.Metrics.Happened(events)
	return nil
}

// undo takes all of them back, since one failed with err, and gives err.
func (f *forks) undo(ctx context.Context, err error) error {
	var g errgroup.Group
	g.SetLimit(forksAtOnce)
	for i, b := range f.boxes {
		g.Go(func() error { return f.e.abortCreate(ctx, b, f.insts[i], f.who, err) })
	}
	return g.Wait()
}

// setStale notes that what the store has is not known.
func (b *entry) setStale() {
	b.commitMu.Lock()
	defer b.commitMu.Unlock()
	b.stale = true
}
