// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/engine/archived"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/rows"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// PromoteRequest is how a fork takes its parent's place.
type PromoteRequest struct {
	Name string // of the snapshot of what the parent was; empty: none
}

// promoteBound bounds a promotion: a snapshot, and the deletion of what was kept in it.
const promoteBound = snapshotBound + deleteBound

// Promote has a fork take the place of the sandbox that it was forked from, in one commit: the parent's key, labels,
// clocks, volumes, snapshots and links to ports are the fork's from then on, and what the parent's disk was is a snapshot more of it. The
// parent is then deleted; its commands end with the cause stopped. The fork's processes go on.
//
// Who calls by the parent's key meanwhile waits, and gets the fork; what was begun before is the parent's, whose
// processes stand still from before the snapshot on, so that all that was answered is in it. Where the promotion fails both are as
// they were. A fork whose parent is gone is fault.NotFound; a sandbox that is no fork is fault.State.
func (e *Engine) Promote(ctx context.Context, c access.Caller, ref string, r PromoteRequest) (*sandbox.Sandbox, error) {
	if r.Name != "" {
		if err := sandbox.CheckSnapshotName("name", r.Name); err != nil {
			return nil, err
		}
	}
	if err := e.enterWork(c, access.SandboxesWrite); err != nil {
		return nil, err
	}
	defer e.group.Leave()
	x := &promotion{e: e, who: core.ActorOf(c), name: r.Name}
	if err := x.find(ctx, c, ref); err != nil {
		return nil, err
	}
	x.fork.touch(e.now(), actCall)
	err := e.work(ctx, promoteBound, func(ctx context.Context) error {
		defer x.give()
		return x.run(ctx)
	}, nil)
	if err != nil {
		return nil, err
	}
	return x.after, nil
}

// promotion is one that is under way.
type promotion struct {
	e            *Engine
	who          core.Actor
	name         string
	fork, parent *entry
	key          string // the parent's
	give         func() // lets go of both, and of the key

	was, of *sandbox.Sandbox // the parent's record and the fork's, before
	l       *session         // what is up of the parent; nil: nothing
	frozen  runtime.Pauser   // of l, where the promotion has paused it
	after   *sandbox.Sandbox
}

// find finds the fork and its parent, and takes the parent's key: nobody creates a sandbox by it meanwhile.
func (x *promotion) find(ctx context.Context, c access.Caller, ref string) error {
	e := x.e
	b, err := e.find(ctx, c, ref)
	if err != nil {
		return err
	}
	s := b.record.Load()
	if s == nil || s.ForkedFrom == "" {
		e.release(b)
		if s == nil {
			return core.NoSandbox(ref)
		}
		return fault.New(fault.State, "the sandbox %s was not forked from another, so there is no place for it to take", s.Ref()).
			WithRemedy("name a fork; forked_from of a sandbox says what it was forked from")
	}
	parent, err := e.acquire(ctx, s.ForkedFrom)
	var p *sandbox.Sandbox
	if err == nil {
		if p = parent.record.Load(); p == nil || p.Project != c.Project {
			e.release(parent)
			p, err = nil, core.NoSandbox(string(s.ForkedFrom))
		}
	}
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(fault.NotFound, err, "the sandbox %s, from which %s was forked, is gone, and its place with it", s.ForkedFrom, s.Ref()).
			WithRemedy("give the fork the key that you want: rename it")
	}
	give := func() {}
	if err == nil && p.Key != "" {
		if give, err = e.awaitKey(ctx, name{c.Project, p.Key}); err != nil {
			e.release(parent)
		}
	}
	if err != nil {
		e.release(b)
		return err
	}
	x.fork, x.parent, x.key = b, parent, p.Key
	x.give = func() { give(); e.release(parent); e.release(b) }
	return nil
}

// run takes both turns, in the order of their ids as all promotions do, and does the work.
func (x *promotion) run(ctx context.Context) error {
	e := x.e
	takes := []struct {
		of   *entry
		take func(context.Context, *entry) (held, error)
	}{{x.parent, e.takeToStop}, {x.fork, e.take}}
	if x.fork.id < x.parent.id {
		slices.Reverse(takes)
	}
	for _, t := range takes {
		own, err := t.take(ctx, t.of)
		if err != nil {
			return err
		}
		defer own.release()
	}
	if err := x.check(ctx); err != nil {
		return err
	}
	parent := held{x.parent}
	x.freeze(ctx)
	_, err := e.snapshots.Take(ctx, x.was, x.who, snapshot.Options{
		Name: x.name, Detail: fmt.Sprintf("what %s was when its fork %s took its place", x.was.Ref(), x.of.Ref()),
	}, x.swap)
	if err != nil {
		x.goOn(ctx)
		return err
	}
	e.core.Checkpoint("promote.outcome")
	x.refit(ctx)
	if err := e.removeWithdrawn(ctx, parent, x.l, x.was, x.who); err != nil { // its place is taken; the clock goes on with it
		e.core.Log.Error("a sandbox whose fork took its place cannot be deleted now; it is tried again", "sandbox", parent.id, "error", err)
	}
	x.after, err = x.fork.current()
	return err
}

// check refuses what could not be done, or would surprise.
func (x *promotion) check(ctx context.Context) error {
	x.was, x.of = x.parent.record.Load(), x.fork.record.Load()
	p, f := x.was, x.of
	switch {
	case p == nil:
		return core.NoSandbox(string(x.parent.id))
	case f == nil:
		return core.NoSandbox(string(x.fork.id))
	case p.Key != x.key || f.ForkedFrom != p.ID || p.State == sandbox.Deleting:
		return fault.New(fault.Conflict, "the sandbox %s changed while its fork %s was to take its place", p.ID, f.Ref()).WithRemedy("look at both, and ask again")
	case f.State == sandbox.Failed:
		return notUp(f)
	case p.AutoDelete && f.State.Down():
		return fault.New(fault.State, "the sandbox %s is deleted when it stops (auto_delete), and its fork %s, which would be so, too, is %s", p.Ref(), f.Ref(), f.State).
			WithRemedy("start the fork first (start %s)", f.Ref())
	case !f.State.Down() && !slices.Equal(p.Mounts, f.Mounts):
		return fault.New(fault.State, "the volumes of %s are others than those of its fork %s, which cannot change while it is %s", p.Ref(), f.Ref(), f.State).
			WithRemedy("stop the fork first (stop %s); or give both the same volumes", f.Ref())
	}
	if err := archived.Refuse(p, "kept in a snapshot"); err != nil {
		return err
	}
	o := secrets.Plain{"key": {p.Key}, "name": {x.name}}
	o.Add("metadata", p.Metadata)
	return x.e.secrets.Refuse(ctx, f.Project, f.ID, o)
}

// freeze ends new uses of the parent, which wait for its turn from now on, and has its processes stand still where the
// runtime can do that: what they would still write, or answer, is not kept. Its record says nothing of it: what a crash leaves
// so is let go on as a running sandbox that is found frozen.
func (x *promotion) freeze(ctx context.Context) {
	x.l, _ = x.parent.withdraw(nil)
	if x.l == nil || x.l.pauses.Paused() {
		return
	}
	p, ok := x.l.inst.(runtime.Pauser)
	if !ok {
		return
	}
	if err := p.Pause(ctx); err != nil {
		x.e.core.Log.Warn("a sandbox whose fork takes its place cannot stand still; what it writes from now on is not kept", "sandbox", x.parent.id, "error", err)
	}
	x.frozen = p
}

// goOn takes freeze back, after a failure.
func (x *promotion) goOn(ctx context.Context) {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	if x.frozen != nil {
		if err := x.frozen.Resume(ctx); err != nil && !fault.Is(err, fault.State) { // one that is down is seen by restore
			x.e.core.Log.Error("a sandbox that was to give up its place cannot go on; it is tried again", "sandbox", x.parent.id, "error", err)
			x.e.later(x.parent)
		}
	}
	x.e.restore(ctx, held{x.parent}, x.l)
	x.e.plan(x.parent)
}

// swap is the commit: of the snapshot, and with it of all that passes to the fork.
func (x *promotion) swap(ctx context.Context, kept sandbox.ID, more func(store.Tx) error, snapped *sandbox.Event) error {
	e := x.e
	first, second := x.parent, x.fork
	if second.id < first.id {
		first, second = second, first
	}
	first.commitMu.Lock()
	defer first.commitMu.Unlock()
	second.commitMu.Lock()
	defer second.commitMu.Unlock()
	at := e.now()
	var p, f *sandbox.Sandbox
	var ev *sandbox.Event
	err := e.core.Store.Update(ctx, func(tx store.Tx) error {
		p, f = clone(e.settings.Load().Kept(x.parent.record.Load())), clone(e.settings.Load().Kept(x.fork.record.Load()))
		for b, s := range map[*entry]*sandbox.Sandbox{x.parent: p, x.fork: f} {
			if last := b.lastUse(); !last.At.IsZero() {
				s.LastActivity = last.At
			}
			s.UpdatedAt = at
		}
		if p.Key != "" {
			f.Key = p.Key
		}
		f.Metadata, f.Clocks, f.Mounts, f.Parent = maps.Clone(p.Metadata), p.Clocks, slices.Clone(p.Mounts), kept
		p.Key, p.State, p.StopCause = "", sandbox.Deleting, sandbox.CausePromote
		p.StopDetail = x.who.Did(sandbox.PlaceGiven(f.ID))
		p.RunMeter(x.was.State)
		ev = x.who.Event(sandbox.EventPromoted, f, at)
		ev.Detail = sandbox.Clip(fmt.Sprintf("took the place of %s, which is kept in the snapshot %s", x.was.ID, kept), sandbox.MaxEventDetail)
		if x.key != x.of.Key {
			ev.Detail = sandbox.Clip(fmt.Sprintf("%s; the key was %q and is %q", ev.Detail, x.of.Key, f.Key), sandbox.MaxEventDetail)
		}
		// The parent gives up the key before the fork has it.
		if err := tx.Sandboxes().Update(p); err != nil {
			return err
		}
		if err := volume.Mountable(tx, f.Project, f.Mounts); err != nil {
			return err
		}
		if err := tx.Sandboxes().Update(f); err != nil {
			return err
		}
		if err := more(tx); err != nil {
			return err
		}
		if _, err := rows.SignalAll(tx, p.ID, "", killedBy(x.who)); err != nil {
			return err
		}
		if err := tx.PreviewLinks().Move(p.ID, f.ID); err != nil {
			return err
		}
		if err := tx.Snapshots().Move(p.ID, f.ID); err != nil {
			return err
		}
		return tx.Events().Append(ev)
	})
	if err != nil {
		x.parent.stale, x.fork.stale = true, true
		e.later(x.parent)
		e.later(x.fork)
		return err
	}
	// The fork has the key before the parent has not, so that nobody finds neither.
	if x.l != nil {
		x.l.signals.Down(killedBy(x.who))
	}
	e.setRecord(x.fork, f)
	e.setRecord(x.parent, p)
	e.core.Metrics.Moved(x.was.State, p.State)
	e.core.Metrics.Happened([]*sandbox.Event{snapped, ev})
	return nil
}

// refit has what is up of the fork follow its record.
func (x *promotion) refit(ctx context.Context) {
	if l := x.fork.standing(); l != nil {
		if err := l.setHostname(ctx, x.fork.record.Load()); err != nil {
			x.e.core.Log.Warn("the host name of a sandbox cannot be set now; it is tried again", "sandbox", x.fork.id, "error", err)
			l.unfit = true
			x.e.later(x.fork)
			return
		}
	}
	x.e.plan(x.fork)
}

// passedOn reports whether a call that names a sandbox by its key is to be begun anew: the sandbox that it found
// is gone or goes, and another has the key. See Promote.
func (e *Engine) passedOn(c access.Caller, ref string, b *entry) bool {
	if sandbox.ValidID(ref) {
		return false
	}
	if s := b.record.Load(); s != nil && s.State != sandbox.Deleting {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	id, ok := e.names[name{c.Project, ref}]
	return ok && id != b.id
}
