// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"
	"sync"
	"syscall"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/pausing"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Terminal is a command at a terminal. It is an [agent.Process] whose end is
// recorded: call Close when done with it, also after Next gave io.EOF. Closing
// it while the command runs hangs up. The sandbox is in use until then.
type Terminal struct {
	*agent.Process
	u    *Use
	ev   *sandbox.Event
	stop context.CancelFunc // of closing it with the engine
	once sync.Once
}

// Terminal starts a command at a terminal. It has no time limit.
func (e *Engine) Terminal(ctx context.Context, c access.Caller, ref string, r TerminalRequest) (*Terminal, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	cmd, err := r.Command(e.settings.Load())
	if err != nil {
		return nil, err
	}
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, actTerminal)
	if err != nil {
		return nil, err
	}
	sctx, cancel := e.unlessPaused(context.WithoutCancel(ctx), u.l, core.CleanupBound)
	defer cancel()
	cmd.ID = sandbox.NewProcessID()
	if err := u.Prepare(sctx, &cmd); err != nil {
		u.End()
		return nil, err
	}
	ev, err := u.intend(sctx, cmd, sandbox.EventTerminal, process.Mark{})
	if err != nil {
		u.End()
		return nil, err
	}
	p, err := u.l.client.Start(sctx, cmd)
	if err != nil && pausing.Left(sctx) {
		u.End()
		return nil, core.Stopping()
	}
	if err != nil {
		err = u.Fail(sctx, pausing.Late(sctx, err))
		newFollower(u, ev, 0).notBegun(sctx, err)
		u.End()
		return nil, err
	}
	tctx, stop := context.WithCancel(e.group.Context())
	t := &Terminal{Process: p, u: u, ev: ev, stop: stop}
	context.AfterFunc(tctx, func() {
		if e.group.Context().Err() != nil {
			_ = t.Close()
		}
	})
	return t, nil
}

// Next returns the next output; io.EOF when the command has ended, and then
// Result holds.
func (t *Terminal) Next(ctx context.Context) (sandbox.Frame, error) {
	fr, err := t.Process.Next(ctx)
	if err == io.EOF { // itself: a connection that broke may wrap it
		t.over(func(context.Context) sandbox.Result { return t.u.l.told(t.ev.ProcessID, t.Process.Result()) })
	}
	return fr, err
}

// Close lets go of the terminal: a command that still runs is hung up on. Twice
// is fine.
func (t *Terminal) Close() error {
	err := t.Process.Close()
	t.over(t.hungUp)
	return err
}

// over completes the event, once, and ends the use.
func (t *Terminal) over(result func(context.Context) sandbox.Result) {
	t.once.Do(func() {
		t.stop()
		t.u.e.group.Spawn(func(ctx context.Context) {
			defer t.u.End()
			ctx = context.WithoutCancel(ctx)
			awake, cancel := t.u.e.unlessPaused(ctx, t.u.l, core.CleanupBound) // hung up on while it is paused, it ends when it is resumed
			defer cancel()
			res := result(awake)
			if pausing.Left(awake) {
				return
			}
			ctx, done := core.Aside(ctx)
			defer done()
			if err := t.u.e.finish(ctx, t.u.b, t.ev, ExecResult{ProcessID: t.ev.ProcessID, Result: res}); err != nil {
				t.u.e.core.Log.Error("the end of a terminal cannot be recorded; the next start does it", "sandbox", t.u.b.id, "process", t.ev.ProcessID, "error", err)
			}
		})
	})
}

// Bounds of waiting for a command that was hung up on.
const (
	hangUpTries = 40
	hangUpPause = 50 * time.Millisecond
)

// hungUp finds out how a command ended whose terminal was closed.
func (t *Terminal) hungUp(ctx context.Context) sandbox.Result {
	f := newFollower(t.u, t.ev, 0)
	hungUp := sandbox.Signaled{By: t.u.who.Name, With: process.SignalName(syscall.SIGHUP)}
	if t.u.e.group.Context().Err() != nil {
		hungUp.By = sandbox.System
	}
	t.u.l.signals.Sent(t.ev.ProcessID, hungUp)
	for range hangUpTries {
		rec, err := t.u.l.client.Process(ctx, t.ev.ProcessID)
		if err == nil && rec.Result != nil {
			return t.u.l.told(t.ev.ProcessID, *rec.Result)
		}
		if fault.Is(err, fault.NotFound) {
			break
		}
		timer := time.NewTimer(hangUpPause)
		select {
		case <-t.u.l.down:
			timer.Stop()
			return f.exited()
		case <-timer.C:
		}
	}
	if err := t.u.l.client.Kill(ctx, t.ev.ProcessID, sandbox.CauseKilled); err == nil {
		if rec, err := t.u.l.client.Process(ctx, t.ev.ProcessID); err == nil && rec.Result != nil {
			return t.u.l.told(t.ev.ProcessID, *rec.Result)
		}
	}
	return f.killed(sandbox.CauseKilled, "its terminal was closed")
}
