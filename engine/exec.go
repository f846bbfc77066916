// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"syscall"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/pausing"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/window"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// ExecResult is what became of a command.
type ExecResult struct {
	ProcessID string
	Running   bool // it goes on; all below but the output so far is zero
	sandbox.Result
	Stdout, Stderr  []byte               // without a sink: what was kept of them
	Changes         []sandbox.FileChange // in the workspace, sorted by path
	ChangesTotal    int                  // how many there were; Changes may hold fewer
	ChangesComplete bool                 // false: the host had to drop some, or cannot tell
	SnapshotID      sandbox.ID           // the checkpoint that was taken after it, if one was
	// NoArtifacts: it was asked for, and nothing changed below sandbox.Artifacts while it
	// ran. False: something did, or it cannot be told.
	NoArtifacts bool
}

// Exec runs a command and waits until it ends, or Wait passes. sink gets its
// output frames in order, one at a time, and never after Exec returned; an error
// of the sink ends the following and becomes Exec's. Without a sink the output
// is collected. A sink that blocks has to return when ctx ends: Exec waits for it.
//
// A command that fails, times out or is killed is a result, not an error; so is
// one whose sandbox went down under it (exit code 137, with the cause). An error
// with a ProcessID means that the command goes on, and nobody follows it for the
// caller: ctx ended, the sink failed, or the server stops. Its event is completed
// all the same.
func (e *Engine) Exec(ctx context.Context, c access.Caller, ref string, r ExecRequest, sink func(sandbox.Frame) error) (ExecResult, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesWrite); err != nil {
		return ExecResult{}, err
	}
	cmd, err := e.command(r, sink != nil)
	if err != nil {
		return ExecResult{}, err
	}
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, actExec)
	if err != nil {
		e.core.Metrics.NotBegun(c.Project, err)
		return ExecResult{}, err
	}
	began := time.Now()
	r.TellLimit(&cmd)
	var artifacts runtime.Window
	if r.TellArtifacts {
		artifacts = u.changing(ctx).Track(ctx, sandbox.Artifacts)
	}
	f, err := u.launch(ctx, cmd, sandbox.EventExec, r.Mark, sink, r.Room)
	if err != nil {
		window.LeftAlone(ctx, artifacts)
		e.core.Metrics.NotBegun(c.Project, err)
		return ExecResult{}, err // launch has ended the use
	}
	f.window = f.window.WithArtifacts(artifacts)
	if r.Started != nil {
		r.Started(f.event.ProcessID)
	}
	res, err := f.attend(ctx, r, began)
	e.core.Metrics.Answered(c.Project, time.Since(began))
	return res, err
}

// launch commits the intent, then starts the command. It takes the use over: the
// follower that it gives ends it, or launch does before an error.
func (u *Use) launch(ctx context.Context, cmd agent.Command, kind sandbox.EventType, mark process.Mark, sink func(sandbox.Frame) error, room *budget.Room) (*follower, error) {
	e := u.e
	// Halfway is the one place where a command must not be left: whether it runs
	// would not be known. All of this takes a millisecond, caller or not.
	// Only a pause in the middle holds it up, until the sandbox is resumed.
	ctx, cancel := e.unlessPaused(context.WithoutCancel(ctx), u.l, core.CleanupBound)
	defer cancel()
	if cmd.ID == "" { // else it was promised already
		cmd.ID = sandbox.NewProcessID()
	}
	err := u.Prepare(ctx, &cmd)
	if err == nil && !mark.Empty() {
		err = u.CheckRecord(ctx, mark.Texts())
	}
	if err != nil {
		u.End()
		return nil, err
	}
	// The agent makes itself ready while the intent is committed, and begins the
	// command at a word that comes after that.
	held, heldErr := u.l.client.Hold(ctx, cmd)
	ev, err := u.intendAs(ctx, cmd, kind, mark)
	if err != nil {
		if heldErr == nil {
			held.Drop()
		}
		u.End()
		return nil, err
	}
	e.core.Checkpoint("exec.intent")
	f := newFollower(u, ev, cmd.Timeout)
	f.lossless = cmd.Lossless
	f.give(&cmd, sink, room)
	f.window = u.Track(ctx, false)
	if err = heldErr; err == nil {
		f.process, err = held.Start()
	}
	if err != nil && pausing.Left(ctx) {
		f.abandon()
		return nil, core.Stopping()
	}
	if err != nil {
		err = u.Fail(ctx, pausing.Late(ctx, err))
		f.notBegun(ctx, err)
		u.End()
		return nil, err
	}
	e.core.Checkpoint("exec.started")
	return f, nil
}

// intend writes the row of a command that is about to begin. Its variables are
// not in it: they may be secrets.
func (u *Use) intend(ctx context.Context, cmd agent.Command, kind sandbox.EventType, mark process.Mark) (*sandbox.Event, error) {
	s := u.b.record.Load()
	if s == nil {
		return nil, core.NoSandbox(string(u.b.id))
	}
	ev := u.who.Event(kind, s, u.e.now())
	ev.Done, ev.OK = false, false
	ev.ProcessID, ev.User, ev.Cwd = cmd.ID, s.Account.Shown(cmd.User), cmd.Cwd
	ev.Name, ev.Labels = mark.Name, mark.Labels
	ev.Command = sandbox.Clip(process.CommandLine(cmd), sandbox.MaxEventCommand-len("…"))
	err := u.e.core.Store.Update(ctx, func(tx store.Tx) error { return tx.Events().Append(ev) })
	if err != nil {
		return nil, err
	}
	u.e.core.Metrics.Happened([]*sandbox.Event{ev})
	return ev, nil
}

// kill ends the command, in a goroutine of the engine's.
func (f *follower) kill() {
	f.u.e.retain(f.u.b)
	f.u.e.group.Spawn(func(ctx context.Context) {
		defer f.u.e.release(f.u.b)
		ctx, cancel := f.u.e.unlessPaused(ctx, f.u.l, killBound)
		defer cancel()
		err := f.u.sending(ctx, f.event.ProcessID, syscall.SIGKILL, func() error {
			return f.u.l.client.Kill(ctx, f.event.ProcessID, sandbox.CauseKilled)
		})
		if err != nil && !fault.Is(err, fault.NotFound) {
			f.u.e.core.Log.Warn("a command whose caller went away cannot be killed", "sandbox", f.u.b.id, "process", f.event.ProcessID, "error", err)
		}
	})
}

const killBound = 30 * time.Second
