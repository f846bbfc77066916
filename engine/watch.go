// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"net"
	"strings"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine/command"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func (e *Engine) newLive(b *entry, inst runtime.Instance, img image.Image) *session {
	l := &session{inst: inst, image: img.Env, down: make(chan struct{})}
	l.client = agent.NewClient(l.dial)
	if t, ok := inst.(runtime.DiskTeller); ok {
		l.client = l.client.WithFullDisk(t.FullDisk)
	}
	l.client = l.client.WithRoot(func() bool { return !e.settings.Load().ForbidRoot })
	l.gate = e.gateOf(b, l)
	e.observe(b, l)
	rec := b.record.Load()
	l.setEnv(rec.Env, rec)
	return l
}

// dial connects to the agent of this life. An instance whose disk is exchanged at once
// answers under the same name in its next one, and that agent knows no better of what
// ran before than that it was stopped.
func (l *session) dial(ctx context.Context) (net.Conn, error) {
	conn, err := l.inst.Dial(ctx)
	if l.passed.Load() { // asked afterwards: whoever reached the next life finds it set
		if err == nil {
			_ = conn.Close()
		}
		return nil, fault.New(fault.State, "the sandbox is being rolled back, and what was asked is of the time before").
			WithRemedy("ask again")
	}
	return conn, err
}

// told is what an agent tells of a command's end, with what its sandbox was taken down
// for: the agent knows only that it was.
func (l *session) told(processID string, res sandbox.Result) sandbox.Result {
	if x := l.ending.Load(); x != nil && res.Cause == sandbox.CauseStopped {
		res.Cause, res.CauseDetail = x.Cause, x.Detail
	}
	if t, ok := l.inst.(runtime.DiskTeller); ok && res.Cause == sandbox.CauseDisk {
		res.CauseDetail = agent.DiskFull(t.FullDisk()) + ": " + res.CauseDetail
	}
	l.signals.Tell(processID, &res)
	return res
}

// setEnv makes own, over the image's, the variables of commands begun from now on.
func (l *session) setEnv(own map[string]string, of *sandbox.Sandbox) {
	programs := ""
	if h, ok := l.inst.(runtime.Helper); ok {
		programs = h.Programs()
	}
	l.env.Store(command.NewVariables(l.image, own, of, programs))
}

// giveAccount has the user of a new life have its account, where its driver was not told it in spec. again is
// that the disk had it before, and then nothing that the disk says against it is heard.
func (e *Engine) giveAccount(ctx context.Context, s *sandbox.Sandbox, inst runtime.Instance, told *runtime.Account, again bool) error {
	if _, ok := e.core.Runtimes[s.Runtime].(runtime.Accounter); ok && told != nil {
		return nil
	}
	return agent.NewClient(inst.Dial).SetAccount(ctx, s.Account, again)
}

// giveAgain is giveAccount for a disk that had the sandbox's account.
func (e *Engine) giveAgain(ctx context.Context, s *sandbox.Sandbox, inst runtime.Instance) error {
	if s.Account.Default() {
		return nil
	}
	return e.giveAccount(ctx, s, inst, core.Spec(s, image.Image{}).Account, true)
}

// awaitAccount waits until the sandbox has its account, for who looks at its files from outside. Why it has not is
// the error of each call to the agent.
func (u *Use) awaitAccount(ctx context.Context) {
	if u.Account().Default() || u.l.placed.Load() {
		return
	}
	if err := u.l.client.AwaitAccount(ctx); err == nil || ctx.Err() == nil {
		u.l.placed.Store(true)
	}
}

// watch waits until the instance is down. If that was no verb's doing, it
// commits why.
func (e *Engine) watch(ctx context.Context, b *entry, l *session) {
	exit, err := l.inst.Wait(ctx)
	if err != nil {
		return // the engine ends; the sandbox goes on
	}
	if x := l.ending.Load(); x != nil && exit.Cause == sandbox.CauseStopped {
		exit = *x
	}
	l.exit = exit
	close(l.down)
	l.gate.Close()
	if b.standing() != l {
		return
	}
	// The turn may be held by a verb that is taking it down, or that fails to.
	e.retain(b)
	defer e.release(b)
	own, err := b.take(ctx)
	if err != nil {
		return
	}
	defer own.release()
	if b.standing() != l {
		return
	}
	e.sessionEnded(ctx, own, l)
}

// sessionEnded records that the sandbox went down by itself.
func (e *Engine) sessionEnded(ctx context.Context, b held, l *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileBound)
	defer cancel()
	b.withdraw(nil)
	e.release(b.entry)
	if err := l.inst.Stop(ctx, 0); err != nil { // frees what the host still holds for it
		e.core.Log.Warn("what is left of a sandbox that went down cannot be freed", "sandbox", b.id, "error", err)
	}
	exit := l.exit
	if l.pauses.Paused() {
		exit.Detail = strings.TrimPrefix(exit.Detail+"; it was paused", "; ")
		l.pauses.End()
	}
	if err := e.wentDown(ctx, b, exit, e.now()); err != nil {
		e.core.Log.Error("a sandbox went down, and that cannot be recorded; it is tried again", "sandbox", b.id, "error", err)
		e.later(b.entry)
	}
}

// wentDown commits that the sandbox went down by itself. It is known to have run
// until then.
func (e *Engine) wentDown(ctx context.Context, b held, exit runtime.Exit, then time.Time) error {
	if exit.Cause == sandbox.CauseNone || exit.Cause == sandbox.CauseStopped {
		exit.Cause = sandbox.CauseHost // we did not stop it
	}
	s := b.record.Load()
	e.core.Log.Warn("a sandbox went down by itself", "sandbox", b.id, "cause", exit.Cause, "detail", exit.Detail)
	ev := core.System.Event(sandbox.EventStopped, s, e.now())
	ev.Cause, ev.Detail = exit.Cause, sandbox.Clip(exit.Detail, sandbox.MaxEventDetail)
	err := e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.StopCause, s.StopDetail = sandbox.Stopped, ev.Cause, ev.Detail
		s.StoppedAt, s.UpdatedAt = ev.At, ev.At
		s.StopMeter(then)
	}, ev)
	if err != nil {
		return err
	}
	e.ended(ctx, b)
	return nil
}
