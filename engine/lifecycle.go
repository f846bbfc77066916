// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/rows"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Start brings a sandbox up, whatever took it down: one that is stopped on its
// disk, one that is paused with its processes, and one that has failed if what it
// missed is there again. One that runs is given as it is.
func (e *Engine) Start(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	c = c.Inside()
	return e.verb(ctx, c, ref, startBound, e.takeToWork, func(ctx context.Context, b held) error {
		return e.start(ctx, b, core.ActorOf(c))
	})
}

// Stop ends a sandbox's processes and keeps its disk. Running commands end with
// the cause stopped, after a grace in which they may end by themselves; those of
// one that is paused, too. One that is stopped already is given as it is, but no
// longer starts by itself, should a clock or the host have stopped it.
func (e *Engine) Stop(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	c = c.Inside()
	return e.verb(ctx, c, ref, stopBound+e.settings.Load().StopGrace, e.takeToStop, func(ctx context.Context, b held) error {
		return e.stop(ctx, b, core.ActorOf(c), sandbox.CauseUser, "", nil)
	})
}

// MaxGrace is the longest grace of a stop that a caller may ask for.
const MaxGrace = 10 * time.Minute

// StopWithin is Stop with a grace of the caller's, 0 to MaxGrace, in place of the server's. Zero kills at once.
func (e *Engine) StopWithin(ctx context.Context, c access.Caller, ref string, grace time.Duration) (*sandbox.Sandbox, error) {
	c = c.Inside()
	if grace < 0 || grace > MaxGrace {
		return nil, fault.InvalidField("grace_seconds", "%s is outside 0 to %s seconds", check.Seconds(grace), check.Seconds(MaxGrace))
	}
	return e.verb(ctx, c, ref, stopBound+grace, e.takeToStop, func(ctx context.Context, b held) error {
		return e.stopWithin(ctx, b, core.ActorOf(c), sandbox.CauseUser, "", grace, nil)
	})
}

// Restart is Stop and Start in one turn: the processes end as with Stop, the disk stays, and the
// sandbox runs after, also one that was stopped or paused. Where its start fails it is stopped;
// it is not deleted for that, and is started by the next call, as far as that may.
func (e *Engine) Restart(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	c = c.Inside()
	return e.verb(ctx, c, ref, stopBound+e.settings.Load().StopGrace+startBound, e.takeToStop, func(ctx context.Context, b held) error {
		return e.restart(ctx, b, core.ActorOf(c))
	})
}

// Delete ends a sandbox's processes at once and deletes its disk and its
// record; what stays is its events. One that is gone is fault.NotFound.
func (e *Engine) Delete(ctx context.Context, c access.Caller, ref string) error {
	_, err := e.verb(ctx, c, ref, deleteBound, e.takeToDelete, func(ctx context.Context, b held) error {
		return e.remove(ctx, b, core.ActorOf(c), sandbox.CauseUser, "", nil)
	})
	return err
}

// start is the four steps, of the way up from any state. The entry is reconciled.
func (e *Engine) start(ctx context.Context, b held, who core.Actor) error {
	s := b.record.Load()
	switch {
	case s == nil:
		return core.NoSandbox(string(b.id))
	case s.State == sandbox.Running:
		return nil
	case s.State == sandbox.Paused:
		return e.resume(ctx, b, who)
	case s.State == sandbox.Archived:
		return e.unarchive(ctx, b, who)
	case s.State == sandbox.Failed:
		return notUp(s) // reconciling it has looked whether what it misses is there again
	}
	inst, img, err := e.parts(ctx, s)
	if missing, ok := errors.AsType[*missing](err); ok {
		return e.failed(ctx, b, missing)
	}
	if err != nil {
		return err
	}
	err = e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.UpdatedAt = sandbox.Starting, e.now()
	})
	if err != nil {
		return err
	}
	e.core.Checkpoint("start.intent")
	if err := e.startAnew(ctx, inst, core.Spec(s, img)); err != nil {
		return e.unstart(ctx, b, inst, who, err)
	}
	e.core.Checkpoint("start.done")
	if err := e.giveAgain(ctx, s, inst); err != nil {
		return e.unstart(ctx, b, inst, who, err)
	}
	l := e.newLive(b.entry, inst, img)
	if err := e.openNetwork(ctx, b, l, s.Network); err != nil {
		return e.unstart(ctx, b, inst, who, err)
	}
	at := e.now()
	h := inst.Handle()
	err = e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.Handle, s.StartedAt, s.UpdatedAt = sandbox.Running, h.Data, at, at
		s.StoppedAt, s.StopCause, s.StopDetail = time.Time{}, "", ""
	}, who.Started(s, at, inst))
	if err != nil {
		l.gate.Close()
		return e.unstart(ctx, b, inst, who, err)
	}
	e.core.Checkpoint("start.outcome")
	b.touch(at, actStart)
	e.beginSession(b, l)
	return nil
}

// startAnew starts an instance. One that runs though the records say that it is stopped, as
// an older copy of them may, is taken down first.
func (e *Engine) startAnew(ctx context.Context, inst runtime.Instance, spec runtime.Spec) error {
	err := inst.Start(ctx, spec)
	if !fault.Is(err, fault.State) {
		return err
	}
	e.core.Log.Warn("a sandbox runs that is stopped in the records: it is taken down, and started", "sandbox", spec.ID)
	if err := inst.Stop(ctx, 0); err != nil {
		return err
	}
	return inst.Start(ctx, spec)
}

// unstart takes back a start that failed with err, and gives err.
func (e *Engine) unstart(ctx context.Context, b held, inst runtime.Instance, who core.Actor, err error) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	stopErr := inst.Stop(ctx, 0)
	if stopErr == nil {
		ev := who.Event(sandbox.EventFailed, b.record.Load(), e.now())
		ev.OK, ev.Detail = false, "start: "+core.Reason(err)
		stopErr = e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
			s.State, s.UpdatedAt = sandbox.Stopped, ev.At
		}, ev)
	}
	if stopErr != nil {
		e.core.Log.Error("a start that failed cannot be taken back; it is tried again", "sandbox", b.id, "error", stopErr)
		e.later(b.entry)
	}
	return err
}

// stop is the four steps. The entry is reconciled. may
// (nil: yes) is asked in the instant in which new uses end; if it says no,
// nothing is done.
func (e *Engine) stop(ctx context.Context, b held, who core.Actor, cause sandbox.Cause, detail string, may func(busy int, last activity) bool) error {
	return e.stopWithin(ctx, b, who, cause, detail, e.settings.Load().StopGrace, may)
}

func (e *Engine) stopWithin(ctx context.Context, b held, who core.Actor, cause sandbox.Cause, detail string, grace time.Duration, may func(busy int, last activity) bool) error {
	s := b.record.Load()
	switch {
	case s == nil:
		return core.NoSandbox(string(b.id))
	case s.State.Down():
		return e.keepDown(ctx, b, who, cause)
	case s.State == sandbox.Failed:
		return nil // it is as down as can be
	}
	l, ok, err := e.withdraw(ctx, b, sandbox.Stopping, cause, cmp.Or(detail, who.Did("stopped")), stoppedBy(who, grace), may)
	if !ok {
		return err
	}
	e.core.Checkpoint("stop.intent")
	if err := e.takeDown(ctx, l, grace); err != nil {
		e.release(b.entry)
		e.later(b.entry)
		return fault.Wrap(fault.Unavailable, err, "the sandbox %s cannot be stopped now", b.id).
			WithRemedy("the server goes on trying; ask again in a while")
	}
	e.core.Checkpoint("stop.done")
	e.release(b.entry)
	return e.stopped(ctx, b, who, saidOf(ctx, l.inst))
}

// restart is stop, then start. The entry is reconciled. What would
// keep the sandbox from coming up again is looked for before it goes down.
func (e *Engine) restart(ctx context.Context, b held, who core.Actor) error {
	s := b.record.Load()
	if s == nil {
		return core.NoSandbox(string(b.id))
	}
	if err := e.core.Store.Room(); err != nil {
		return err
	}
	if s.State == sandbox.Running || s.State == sandbox.Paused {
		if _, err := e.imageKept(s.Image, s.ImageDigest); err != nil {
			return err
		}
		if err := e.stop(ctx, b, who, sandbox.CauseRestart, who.Did("restarted"), nil); err != nil {
			return err
		}
		e.core.Checkpoint("restart.stopped")
	}
	return e.start(ctx, b, who)
}

// takeDown ends what is up, after a grace for its processes. Those of a frozen one
// are let go on for that.
func (e *Engine) takeDown(ctx context.Context, l *session, grace time.Duration) error {
	if p, ok := l.inst.(runtime.Pauser); ok && l.pauses.Paused() {
		if err := p.Resume(ctx); err != nil {
			grace = 0
		} else {
			l.pauses.End()
		}
	}
	if grace > 0 {
		e.shutdown(ctx, l, grace)
	}
	err := l.inst.Stop(ctx, 0)
	if err == nil {
		l.pauses.End()
	}
	return err
}

// signPatience is how long a stop waits for an agent that says nothing, and for one that
// does not end what it was given a grace to end.
const signPatience = 2 * time.Second

// shutdown has the agent end its processes, if it is there to do so.
func (e *Engine) shutdown(ctx context.Context, l *session, grace time.Duration) {
	limit, cancel := context.WithTimeout(ctx, signPatience)
	_, err := l.client.Ping(limit)
	cancel()
	if err != nil {
		return
	}
	limit, cancel = context.WithTimeout(ctx, grace+signPatience)
	defer cancel()
	_ = l.client.Shutdown(limit, grace) // what is left is killed
}

// saidOf returns what the runtime says of a stop that is done, as that something is lost by it; "": nothing.
func saidOf(ctx context.Context, inst runtime.Instance) string {
	exit, err := inst.Wait(ctx)
	if err != nil || exit.Cause != sandbox.CauseStopped {
		return ""
	}
	return exit.Detail
}

// stopped commits the outcome of a stop, with the cause that its intent gave, and what is said of it.
func (e *Engine) stopped(ctx context.Context, b held, who core.Actor, said string) error {
	s := b.record.Load()
	ev := who.Event(sandbox.EventStopped, s, e.now())
	ev.Cause, ev.Detail = s.StopCause, s.StopDetail
	if said != "" {
		ev.Detail = sandbox.Clip(strings.TrimPrefix(ev.Detail+"; "+said, "; "), sandbox.MaxEventDetail)
	}
	err := e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.StopDetail, s.StoppedAt, s.UpdatedAt = sandbox.Stopped, ev.Detail, ev.At, ev.At
	}, ev)
	if err != nil {
		e.later(b.entry)
		return err
	}
	e.core.Checkpoint("stop.outcome")
	e.ended(ctx, b)
	return nil
}

// ended is what follows when a sandbox has become stopped: it is deleted, if
// it is to be, and else its clocks go on.
func (e *Engine) ended(ctx context.Context, b held) {
	if err := e.adoptOrphans(ctx, b); err != nil {
		e.core.Log.Error("the ends of commands cannot be recorded; it is tried again", "sandbox", b.id, "error", err)
	}
	e.plan(b.entry)
	s := b.record.Load()
	if s == nil || !s.DeletesItself() {
		return
	}
	if err := e.autoDelete(ctx, b); err != nil {
		e.core.Log.Error("a sandbox that is deleted when it stops cannot be deleted now; it is tried again", "sandbox", b.id, "error", err)
		e.later(b.entry)
	}
}

// autoDelete deletes a sandbox because it stopped.
func (e *Engine) autoDelete(ctx context.Context, b held) error {
	s := b.record.Load()
	detail := fmt.Sprintf("it is deleted when it stops (auto_delete), and it stopped (%s)", s.StopCause)
	if s.StopDetail != "" {
		detail = fmt.Sprintf("it is deleted when it stops (auto_delete), and it stopped (%s: %s)", s.StopCause, s.StopDetail)
	}
	return e.reap(ctx, b, s.StopCause, sandbox.Clip(detail, sandbox.MaxEventDetail), nil)
}

// keepDown makes a caller's stop, or pause, of what a clock or the host had stopped,
// or paused, count as one: it is not brought up by the next call.
func (e *Engine) keepDown(ctx context.Context, b held, who core.Actor, cause sandbox.Cause) error {
	s := b.record.Load()
	if cause != sandbox.CauseUser || !s.StopCause.Passes() { // no call brings it up as it is, and why it is down is worth more
		return nil
	}
	t := sandbox.EventStopped
	if s.State == sandbox.Paused {
		t = sandbox.EventPaused
	}
	ev := who.Event(t, s, e.now())
	ev.Cause = cause
	ev.Detail = fmt.Sprintf("%s; it was before (%s)", who.Did(string(s.State)), s.StopCause)
	return e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.StopCause, s.StopDetail, s.UpdatedAt = cause, ev.Detail, ev.At
	}, ev)
}

// remove is the four steps of a delete, from any state. may (nil:
// yes) is asked in the instant in which new uses end; if it says no, nothing is done.
func (e *Engine) remove(ctx context.Context, b held, who core.Actor, cause sandbox.Cause, detail string, may func(busy int, last activity) bool) error {
	s := b.record.Load()
	if s == nil {
		return core.NoSandbox(string(b.id))
	}
	l, ok, err := e.withdraw(ctx, b, sandbox.Deleting, cause, cmp.Or(detail, who.Did("deleted")), killedBy(who), may)
	if !ok {
		return err
	}
	e.core.Checkpoint("delete.intent")
	return e.removeWithdrawn(ctx, b, l, s, who)
}

// removeWithdrawn is the rest of a delete whose intent is committed: s is the record before that, l what was up.
func (e *Engine) removeWithdrawn(ctx context.Context, b held, l *session, s *sandbox.Sandbox, who core.Actor) (err error) {
	var inst runtime.Instance
	if l != nil {
		inst = l.inst
	} else if inst, err = e.open(ctx, s); fault.Is(err, fault.NotFound) {
		inst, err = nil, nil
	}
	if l != nil && b.uses() > 0 {
		err = e.closeRows(ctx, b, l)
	}
	if err == nil && inst != nil {
		err = inst.Remove(ctx)
	}
	if l != nil {
		if err == nil {
			l.pauses.End()
		}
		e.release(b.entry)
	}
	if err != nil {
		e.later(b.entry)
		return fault.Wrap(fault.Unavailable, err, "the sandbox %s cannot be deleted now", b.id).
			WithRemedy("the server goes on trying; ask again in a while")
	}
	e.core.Checkpoint("delete.done")
	return e.removed(ctx, b, who)
}

// removed commits the outcome of a delete, with the cause that its intent gave.
func (e *Engine) removed(ctx context.Context, b held, who core.Actor) error {
	s := b.record.Load()
	ev := who.Event(sandbox.EventDeleted, s, e.now())
	ev.Cause, ev.Detail = s.StopCause, s.StopDetail
	if err := e.erase(ctx, b.entry, ev); err != nil {
		e.later(b.entry)
		return err
	}
	e.core.Checkpoint("delete.outcome")
	return nil
}

// open finds the instance of a record, up or down.
func (e *Engine) open(ctx context.Context, s *sandbox.Sandbox) (runtime.Instance, error) {
	d := e.core.Runtimes[s.Runtime]
	if d == nil {
		return nil, fault.New(fault.Unavailable, "the sandbox %s needs the runtime %q, which this server is not configured for", s.ID, s.Runtime).
			WithRemedy("start the server with that runtime")
	}
	return d.Open(ctx, runtime.Handle{ID: s.ID, Data: s.Handle})
}

// beginSession makes an instance that is up available, frozen or not, and begins to watch it.
func (e *Engine) beginSession(b held, l *session) {
	e.retain(b.entry)
	if l.gate.Differs(e.settings.Load().Network.Bounded(b.record.Load().Network)) {
		ctx, cancel := core.Aside(e.group.Context())
		defer cancel()
		e.reopenNetwork(ctx, b, l)
	}
	b.put(l)
	e.plan(b.entry)
	e.group.Spawn(func(ctx context.Context) { e.watch(ctx, b.entry, l) })
	if s := b.record.Load(); e.up != nil && s != nil {
		e.up(s)
	}
}

// withdraw ends new uses of a sandbox, if may (nil: yes) agrees in that instant, and
// commits what is about to be done to it, with the cause. It gives what is up, nil for
// nothing. Not ok: nothing is to be done, or err is why nothing can be. by is how its commands are ended; the zero
// value: they are not.
func (e *Engine) withdraw(ctx context.Context, b held, to sandbox.State, cause sandbox.Cause, detail string, by sandbox.Signaled, may func(busy int, last activity) bool) (l *session, ok bool, err error) {
	if l, ok = b.withdraw(may); !ok {
		return nil, false, nil
	}
	err = e.commitWith(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.StopCause, s.StopDetail, s.UpdatedAt = to, cause, detail, e.now()
	}, func(tx store.Tx) (err error) {
		if l != nil && by.By != "" {
			_, err = rows.SignalAll(tx, b.id, "", by)
		}
		return err
	})
	if err != nil {
		e.restore(ctx, b, l)
		return nil, false, err
	}
	if l != nil {
		l.signals.Down(by)
	}
	return l, true, nil
}

// restore takes back a withdrawal after which nothing was done.
func (e *Engine) restore(ctx context.Context, b held, l *session) {
	if l == nil {
		return
	}
	b.put(l)
	select {
	case <-l.down:
		// Its watcher found it withdrawn and left it to whoever has the turn.
		e.sessionEnded(ctx, b, l)
	default:
		l.gate.BindOwed(ctx)
	}
}
