// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/archived"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/rows"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// restoreBound bounds a rollback: a host that cannot share what two disks have in
// common copies the snapshot.
const restoreBound = 10 * time.Minute

// Rollback makes the disk of a sandbox what it was in a snapshot: one of its own by
// name, any of the project's by id, or "base", its image. Its processes end with the
// cause restore; id, key, limits, variables and volumes stay. It runs after as it
// ran before: one that is stopped stays so, one that was paused runs. All or nothing:
// where the old disk cannot be exchanged it is whole, and where the sandbox does not
// start on the new one it is stopped, with the reason, and the new disk is whole.
func (e *Engine) Rollback(ctx context.Context, c access.Caller, ref, to string) (*sandbox.Sandbox, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	switch to {
	case "":
		return nil, fault.InvalidField("to", "is empty; name a snapshot, or %q", snapshot.PointBase)
	case snapshot.PointNow:
		return nil, fault.InvalidField("to", "%q is where it is already; name a snapshot, or %q", snapshot.PointNow, snapshot.PointBase)
	}
	return e.verb(ctx, c, ref, restoreBound, e.takeToStop, func(ctx context.Context, b held) error {
		if err := e.core.Store.Room(); err != nil {
			return err
		}
		return e.rollback(ctx, b, core.ActorOf(c), to)
	})
}

// Reset is Rollback to the image: the sandbox is as one just made, and keeps id, key and all
// that its record says.
func (e *Engine) Reset(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	return e.Rollback(ctx, c, ref, snapshot.PointFresh)
}

// exchange is a rollback that is under way.
type exchange struct {
	e      *Engine
	b      held
	who    core.Actor
	before *sandbox.Sandbox // its record before
	to     sandbox.ID       // zero: an empty disk
	img    image.Image
	what   string // "rolled back to … by …"
	begun  bool   // the disk may have been exchanged already
}

// rollback is the four steps. The entry is reconciled.
func (e *Engine) rollback(ctx context.Context, b held, who core.Actor, to string) error {
	s := b.record.Load()
	if s == nil {
		return core.NoSandbox(string(b.id))
	}
	if err := archived.Refuse(s, "rolled back"); err != nil {
		return err
	}
	if _, err := e.snapshots.Driver(s.Runtime); err != nil {
		return err
	}
	img, err := e.imageKept(s.Image, s.ImageDigest)
	if err != nil {
		return err
	}
	x := &exchange{e: e, b: b, who: who, before: s, img: img}
	x.what = who.Did("made fresh")
	if to != snapshot.PointBase && to != snapshot.PointFresh {
		snap, release, err := e.snapshots.Hold(ctx, s.Project, string(s.ID), to)
		if err != nil {
			return err
		}
		e.core.Holds.Pin(b.id, release)
		if err := snapshot.Fits(s, snap); err != nil {
			e.core.Holds.Unpin(b.id)
			return err
		}
		x.to = snap.ID
		x.what = who.Did("rolled back to " + snapshot.Describe(snap))
	}
	return x.do(ctx)
}

func (x *exchange) do(ctx context.Context) error {
	e, b := x.e, x.b
	runs := x.before.State != sandbox.Stopped // after it, too
	l, _ := b.withdraw(nil)
	at := e.now()
	err := e.commitWith(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.Restore, s.UpdatedAt = sandbox.Restoring, x.to, at
		if runs { // else what it was stopped for still holds
			s.StopCause, s.StopDetail = sandbox.CauseRestore, x.what
		}
		s.StopMeter(at)
	}, func(tx store.Tx) error {
		_, err := rows.SignalAll(tx, b.id, "", killedBy(x.who))
		return err
	})
	if err != nil {
		e.core.Holds.Unpin(b.id)
		e.restore(ctx, b, l)
		return err
	}
	e.core.Checkpoint("rollback.intent")
	if l != nil {
		l.signals.Down(killedBy(x.who))
		l.ending.Store(&runtime.Exit{Cause: sandbox.CauseRestore, Detail: x.what})
		if x.atOnce(ctx, l) {
			return x.started(ctx, l.inst)
		}
		err := l.inst.Stop(ctx, 0) // what its processes would still write is not kept
		l.pauses.End()
		e.release(b.entry)
		if err != nil {
			return x.unfinished(err)
		}
	}
	e.core.Checkpoint("rollback.down")
	if err := e.swap(ctx, x.before, x.to); err != nil {
		return x.undo(ctx, err)
	}
	e.core.Checkpoint("rollback.done")
	if !runs {
		return x.finish(ctx, nil)
	}
	return x.start(ctx)
}

// atOnce has the driver end the processes, exchange the disk and start anew in one
// go, where it can. False: it did not, and each is to be done by itself.
func (x *exchange) atOnce(ctx context.Context, l *session) bool {
	r, ok := l.inst.(runtime.Restorer)
	if !ok {
		return false
	}
	l.passed.Store(true)
	if err := r.Restore(ctx, core.Spec(x.b.record.Load(), x.img), x.to); err != nil {
		x.begun = true
		x.e.core.Log.Warn("a disk cannot be exchanged at once; it is done step by step", "sandbox", x.b.id, "error", err)
		return false
	}
	l.pauses.End()
	x.e.release(x.b.entry)
	return true
}

// start brings the sandbox up on its new disk.
func (x *exchange) start(ctx context.Context) error {
	e, b := x.e, x.b
	inst, err := e.open(ctx, x.before)
	if err == nil {
		err = inst.Start(ctx, core.Spec(b.record.Load(), x.img))
	}
	if err != nil {
		actx, cancel := core.Aside(ctx)
		defer cancel()
		if inst != nil {
			if stopErr := inst.Stop(actx, 0); stopErr != nil {
				e.core.Log.Error("a start that failed cannot be taken back; it is tried again", "sandbox", b.id, "error", stopErr)
				return x.unfinished(err)
			}
		}
		if dbErr := x.finish(actx, err); dbErr != nil {
			return dbErr
		}
		return err
	}
	return x.started(ctx, inst)
}

// started commits that the sandbox is up on its new disk.
func (x *exchange) started(ctx context.Context, inst runtime.Instance) error {
	e, b := x.e, x.b
	e.core.Checkpoint("rollback.started")
	if err := e.giveAgain(ctx, x.before, inst); err != nil {
		return x.unfinished(err)
	}
	at := e.now()
	h := inst.Handle()
	ev := x.event(at)
	err := e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.Handle, s.StartedAt, s.RunningSince, s.UpdatedAt = sandbox.Running, h.Data, at, at, at
		s.StoppedAt, s.StopCause, s.StopDetail = time.Time{}, "", ""
		s.Restore, s.Parent, s.Skills = "", x.to, nil
	}, ev)
	if err != nil {
		return x.unfinished(err) // reconciling takes it down
	}
	e.core.Holds.Unpin(b.id)
	e.core.Checkpoint("rollback.outcome")
	e.beginSession(b, e.newLive(b.entry, inst, x.img))
	return nil
}

func (x *exchange) event(at time.Time) *sandbox.Event {
	ev := x.who.Event(sandbox.EventRestored, x.before, at)
	ev.Cause, ev.Detail = sandbox.CauseRestore, sandbox.Clip(x.what, sandbox.MaxEventDetail)
	return ev
}

// finish commits that the disk is exchanged and the sandbox down; failed is why it
// did not start, nil if it was not to.
func (x *exchange) finish(ctx context.Context, failed error) error {
	ev := x.event(x.e.now())
	evs := []*sandbox.Event{ev}
	if failed != nil {
		bad := x.who.Event(sandbox.EventFailed, x.before, ev.At)
		bad.OK, bad.Detail = false, "start after it was "+x.what+": "+core.Reason(failed)
		evs = append(evs, bad)
	}
	err := x.e.commit(ctx, x.b.entry, func(s *sandbox.Sandbox) {
		s.State, s.Restore, s.Parent, s.Skills, s.UpdatedAt = sandbox.Stopped, "", x.to, nil, ev.At
		if s.StoppedAt.IsZero() {
			s.StoppedAt = ev.At
		}
		if failed != nil {
			s.StopDetail = sandbox.Clip(x.what+"; it did not start: "+core.Reason(failed), sandbox.MaxEventDetail)
		}
	}, evs...)
	if err != nil {
		x.e.later(x.b.entry)
		return err
	}
	x.e.core.Holds.Unpin(x.b.id)
	x.e.core.Checkpoint("rollback.outcome")
	x.e.ended(ctx, x.b)
	return nil
}

// undo records that the disk is as it was, since exchanging it failed with err, and
// gives err. The processes are gone: the sandbox is stopped.
func (x *exchange) undo(ctx context.Context, err error) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	to := sandbox.Stopped
	if x.before.State == sandbox.Failed {
		to = sandbox.Failed
	}
	ev := x.who.Event(sandbox.EventFailed, x.before, x.e.now())
	disk := "its disk is as it was"
	if x.begun {
		disk = "its disk is what it was or what it was to become, whole"
	}
	ev.OK, ev.Detail = false, sandbox.Clip("rollback: "+core.Reason(err)+"; "+disk, sandbox.MaxEventDetail)
	dbErr := x.e.commit(ctx, x.b.entry, func(s *sandbox.Sandbox) {
		s.State, s.Restore, s.UpdatedAt = to, "", ev.At
		switch {
		case to == sandbox.Failed:
			s.StopCause, s.StopDetail = x.before.StopCause, x.before.StopDetail
		case x.before.State == sandbox.Restoring && s.StopCause != sandbox.CauseRestore: // it was stopped before, for what still holds
		case x.before.State != sandbox.Stopped:
			s.StopDetail = "stopped for a rollback that failed: " + core.Reason(err)
		}
		if s.StoppedAt.IsZero() {
			s.StoppedAt = ev.At
		}
	}, ev)
	if dbErr != nil {
		x.e.core.Log.Error("a rollback that failed cannot be recorded; it is tried again", "sandbox", x.b.id, "error", dbErr)
		return x.unfinished(err)
	}
	x.e.core.Holds.Unpin(x.b.id)
	x.e.ended(ctx, x.b)
	return err
}

// unfinished leaves the rest to reconciling.
func (x *exchange) unfinished(err error) error {
	x.e.later(x.b.entry)
	return fault.Wrap(fault.Unavailable, err, "the sandbox %s cannot be rolled back now", x.b.id).
		WithRemedy("the server goes on trying; ask again in a while")
}

// swap exchanges the disk of a sandbox that is down. One that has no disk any more
// gets one.
func (e *Engine) swap(ctx context.Context, s *sandbox.Sandbox, to sandbox.ID) error {
	d, err := e.snapshots.Driver(s.Runtime)
	if err != nil {
		return err
	}
	inst, err := e.open(ctx, s)
	if err == nil {
		err = d.Rollback(ctx, s.ID, to, s.Limits)
		if !fault.Is(err, fault.State) {
			return err
		}
		e.core.Log.Warn("a sandbox runs that is stopped in the records: it is taken down, and its disk exchanged", "sandbox", s.ID)
		if err := inst.Stop(ctx, 0); err != nil {
			return err
		}
		return d.Rollback(ctx, s.ID, to, s.Limits)
	}
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	img, err := e.imageKept(s.Image, s.ImageDigest)
	if err != nil {
		return err
	}
	whole := core.Spec(s, img)
	whole.From = to
	if inst, err = e.core.Runtimes[s.Runtime].Create(ctx, whole); err != nil {
		return err
	}
	return inst.Stop(ctx, 0)
}

// finishRestore reconciles a sandbox that is Restoring: its disk is exchanged, again if
// it was, and it is down. A snapshot that is gone leaves the disk as it is.
func (e *Engine) finishRestore(ctx context.Context, b held, why string) error {
	s := b.record.Load()
	x := &exchange{e: e, b: b, who: core.System, before: s, to: s.Restore, begun: true}
	x.what = "made fresh; " + why
	if x.to != "" {
		x.what = fmt.Sprintf("rolled back to %s; %s", x.to, why)
	}
	if s.StopCause == sandbox.CauseRestore {
		x.what = s.StopDetail + "; " + why
	}
	if err := e.down(ctx, s); err != nil {
		return e.notReconciled(b.entry, err)
	}
	switch err := e.swap(ctx, s, x.to); fault.Of(err) {
	case "":
	case fault.NotFound, fault.State: // what it needs is gone, and waiting brings nothing back
		if x.undo(ctx, err) != err {
			return e.notReconciled(b.entry, err)
		}
		return nil
	default:
		return e.notReconciled(b.entry, err)
	}
	if err := x.finish(ctx, nil); err != nil {
		return e.notReconciled(b.entry, err)
	}
	return nil
}

// imageKept is the image that a disk lies over. Without exactly that one the disk is
// of no use.
func (e *Engine) imageKept(name, digest string) (image.Image, error) {
	return e.snapshots.Image(name, digest)
}

// pinRestore keeps the snapshot that a sandbox of the last run is to become.
func (e *Engine) pinRestore(ctx context.Context, s *sandbox.Sandbox) error {
	if s.State != sandbox.Restoring || s.Restore == "" {
		return nil
	}
	release, err := e.core.Holds.Share(ctx, s.Restore)
	if err != nil {
		return err
	}
	e.core.Holds.Pin(s.ID, release)
	return nil
}
