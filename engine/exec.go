// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/defaults"
	"sandpit.dev/engine/pausing"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Bounds of a command.
const (
	MaxStdin          = agent.MaxStdin  // bytes given with a command
	MaxCollected      = 16 << 20        // bytes a stream, held for a caller without a sink
	MaxStreamed       = agent.MaxOutput // bytes a stream, to a sink
	DefaultOutput     = 1 << 20         // bytes a stream, of a command that names no bound
	MaxCommandTimeout = defaults.MaxCommandTimeout
)

// ExecRequest is one command.
type ExecRequest struct {
	Shell string   // run by a shell; or
	Argv  []string // a program and its arguments. Exactly one of the two
	Cwd   string   // relative to the workspace; empty: the workspace, or root's home
	Env   map[string]string
	User  string // "sandbox" or "root"; empty: sandbox
	Stdin []byte // at most MaxStdin bytes; or:
	// StreamStdin: the input comes by WriteInput. Without either it is empty.
	StreamStdin bool
	Timeout     time.Duration // the command is killed then; zero: Defaults.CommandTimeout
	Wait        time.Duration // Exec returns then at the latest; zero: when the command has ended
	MaxStdout   int64         // bytes to keep; zero: DefaultOutput
	MaxStderr   int64
	// Started, if not nil, is called once, when the command is about to be followed
	// and before anything of it is given out: whoever goes away then knows its id.
	Started func(processID string)
	// KillOnDisconnect kills the command when ctx ends, or the sink fails, before
	// Exec has returned. Else it goes on.
	KillOnDisconnect bool
	// Lossless: the sink gets all of the output. Where it is slow the command waits for it, also
	// for a while after it was lost, and the bytes of a frame hold only until it returns; what is kept is the end of the output, and of both streams
	// together as much as MaxStdout and MaxStderr say.
	Lossless bool
	// Limited, if not nil, is called with the command's time limit before Started.
	Limited func(time.Duration)
	// After is with ExecAgain the frame behind which the output goes on. If its log is read from
	// there, Resumed is called before Started.
	After   int64
	Resumed func()
	// Room is where the output that is collected counts until its owner closes it; nil: nowhere.
	Room *budget.Room
	// TellArtifacts has the result say whether the artifacts were left alone.
	TellArtifacts bool
	Redact        [][]byte // values that its output and its record are not to show, besides the sandbox's secrets
}

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
	if err := c.Require(access.SandboxesWrite); err != nil {
		return ExecResult{}, err
	}
	cmd, err := e.command(r, sink != nil)
	if err != nil {
		return ExecResult{}, err
	}
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, actExec)
	if err != nil {
		return ExecResult{}, err
	}
	began := time.Now()
	r.tellLimit(&cmd)
	var artifacts runtime.Window
	if r.TellArtifacts {
		artifacts = u.track(ctx, sandbox.Artifacts)
	}
	f, err := u.launch(ctx, cmd, sandbox.EventExec, sink, r.Room)
	if err != nil {
		leftAlone(ctx, artifacts)
		return ExecResult{}, err // launch has ended the use
	}
	f.window.artifacts = artifacts
	if r.Started != nil {
		r.Started(f.event.ProcessID)
	}
	res, err := f.attend(ctx, r, began)
	e.core.Metrics.ExecSeconds.Observe(time.Since(began).Seconds())
	return res, err
}

func (r *ExecRequest) tellLimit(cmd *agent.Command) {
	if r.Limited != nil {
		r.Limited(cmd.Timeout)
	}
}

// command checks a request and makes of it what the agent needs. The sandbox's
// own variables are added later.
func (e *Engine) command(r ExecRequest, streamed bool) (agent.Command, error) {
	var k check.Fields
	k.Command(r.Shell, r.Argv)
	k.Env(r.Env)
	if len(r.Stdin) > MaxStdin {
		k.Bad("stdin", "has %d bytes, more than %d; put it into a file", len(r.Stdin), MaxStdin)
	}
	if len(r.Stdin) > 0 && r.StreamStdin {
		k.Bad("stdin", "is given at once and streamed; it can be one of them")
	}
	k.Timeout("timeout_seconds", r.Timeout, e.settings.Load().MaxCommandTimeout)
	k.Timeout("wait_seconds", r.Wait, MaxCommandTimeout)
	most := int64(MaxCollected)
	if streamed {
		most = MaxStreamed
	}
	k.Bytes("max_stdout", r.MaxStdout, most)
	k.Bytes("max_stderr", r.MaxStderr, most)
	cmd := agent.Command{
		Shell: r.Shell, Argv: r.Argv, Cwd: k.Cwd(r.Cwd, r.User), Env: r.Env, Stdin: r.Stdin, StreamStdin: r.StreamStdin, Timeout: r.Timeout,
		MaxStdout: orDefault(r.MaxStdout, DefaultOutput), MaxStderr: orDefault(r.MaxStderr, DefaultOutput),
		Lossless: r.Lossless && streamed, Redact: r.Redact,
	}
	if cmd.Timeout == 0 {
		cmd.Timeout = e.settings.Load().CommandTimeout
	}
	var err error
	if cmd.User, err = k.User(r.User, e.settings.Load().ForbidRoot); err != nil {
		return cmd, err
	}
	return cmd, k.Err()
}

func orDefault(n, def int64) int64 {
	if n == 0 {
		return def
	}
	return n
}

// launch commits the intent, then starts the command. It takes the use over: the
// follower that it gives ends it, or launch does before an error.
func (u *Use) launch(ctx context.Context, cmd agent.Command, kind sandbox.EventType, sink func(sandbox.Frame) error, room *budget.Room) (*follower, error) {
	e := u.e
	// Halfway is the one place where a command must not be left: whether it runs
	// would not be known. All of this takes a millisecond, caller or not.
	// Only a pause in the middle holds it up, until the sandbox is resumed.
	ctx, cancel := e.unlessPaused(context.WithoutCancel(ctx), u.l, core.CleanupBound)
	defer cancel()
	if cmd.ID == "" { // else it was promised already
		cmd.ID = sandbox.NewProcessID()
	}
	if err := u.Prepare(ctx, &cmd); err != nil {
		u.End()
		return nil, err
	}
	// The agent makes itself ready while the intent is committed, and begins the
	// command at a word that comes after that.
	held, heldErr := u.l.client.Hold(ctx, cmd)
	ev, err := u.intend(ctx, cmd, kind)
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
func (u *Use) intend(ctx context.Context, cmd agent.Command, kind sandbox.EventType) (*sandbox.Event, error) {
	s := u.b.record.Load()
	if s == nil {
		return nil, core.NoSandbox(string(u.b.id))
	}
	ev := u.who.Event(kind, s, u.e.now())
	ev.Done, ev.OK = false, false
	ev.ProcessID, ev.User, ev.Cwd = cmd.ID, cmd.User, cmd.Cwd
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
		err := f.u.l.client.Kill(ctx, f.event.ProcessID, sandbox.CauseKilled)
		if err != nil && !fault.Is(err, fault.NotFound) {
			f.u.e.core.Log.Warn("a command whose caller went away cannot be killed", "sandbox", f.u.b.id, "process", f.event.ProcessID, "error", err)
		}
	})
}

const killBound = 30 * time.Second
