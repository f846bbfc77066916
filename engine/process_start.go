// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// DefaultDetachedOutput is how many bytes are kept of each stream of a process
// that names no bound: nobody may be there to read it while it runs.
const DefaultDetachedOutput = 16 << 20

// StartRequest is a process that nobody waits for.
type StartRequest struct {
	Shell       string   // run by a shell; or
	Argv        []string // a program and its arguments. Exactly one of the two
	Cwd         string   // relative to the workspace; empty: the workspace, or root's home
	Env         map[string]string
	User        string        // "sandbox" or "root"; empty: sandbox
	Stdin       []byte        // at most MaxStdin bytes; or:
	StreamStdin bool          // it comes by WriteInput; without either it is empty
	Terminal    *TerminalSize // a terminal for all three streams; its input is streamed
	Timeout     time.Duration // it is killed then; zero: never
	MaxStdout   int64         // bytes to keep; zero: DefaultDetachedOutput
	MaxStderr   int64
	// ProcessID is the id that the process was promised, see sandbox.NewProcessID; empty: a new one.
	ProcessID string
}

// TerminalSize is the terminal that a process is started at.
type TerminalSize struct {
	Cols, Rows uint16 // 1 to 1000; zero: 80 and 24
	Term       string // the kind of terminal; empty: xterm-256color
}

// StartProcess starts a process and gives its record at once. It belongs to the
// sandbox: it goes on whoever goes away, and the sandbox is in use until its end.
// Its event is completed then, by this server or the next. A program that cannot be
// run is no error: its record says that it ended, with 127 or 126.
func (e *Engine) StartProcess(ctx context.Context, c access.Caller, ref string, r StartRequest) (sandbox.Process, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return sandbox.Process{}, err
	}
	cmd, err := e.detached(r)
	if err != nil {
		return sandbox.Process{}, err
	}
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, actProcess)
	if err != nil {
		return sandbox.Process{}, err
	}
	kind := sandbox.EventExec
	if cmd.Terminal != nil {
		kind = sandbox.EventTerminal
	}
	f, err := u.launch(ctx, cmd, kind, ignore, nil)
	if err != nil {
		return sandbox.Process{}, err // launch has ended the use
	}
	rec := f.process.Record()
	f.detach()
	e.group.Spawn(f.stay)
	return rec, nil
}

// ignore is the sink of what nobody follows.
func ignore(sandbox.Frame) error { return nil }

// detached checks a request and makes of it what the agent needs.
func (e *Engine) detached(r StartRequest) (agent.Command, error) {
	cmd, err := e.command(ExecRequest{
		Shell: r.Shell, Argv: r.Argv, Cwd: r.Cwd, Env: r.Env, User: r.User, Stdin: r.Stdin, StreamStdin: r.StreamStdin || r.Terminal != nil, Timeout: r.Timeout,
		MaxStdout: orDefault(r.MaxStdout, DefaultDetachedOutput), MaxStderr: orDefault(r.MaxStderr, DefaultDetachedOutput),
	}, true)
	var k check.Fields
	if err := k.Take(err); err != nil {
		return cmd, err
	}
	cmd.ID, cmd.Timeout = r.ProcessID, r.Timeout
	if t := r.Terminal; t != nil {
		cmd.Rolling = true
		cmd.MaxStdout, cmd.MaxStderr = orDefault(r.MaxStdout, terminalLog), 1
		cmd.Terminal = checkTerminal(&k, t.Cols, t.Rows, t.Term)
		cmd.Terminal.Stays = true
	}
	return cmd, k.Err()
}

// stay sees a command to its end that nobody listens to. It asks for the end
// alone, so that output costs the server nothing while nobody follows it.
func (f *follower) stay(ctx context.Context) {
	res, err := f.await(ctx)
	if err != nil {
		f.abandon()
		return
	}
	f.conclude(ctx, res)
}

// await is follow without the output.
func (f *follower) await(ctx context.Context) (sandbox.Result, error) {
	f.hangUp()
	f.process = nil
	limited, cancel := f.limited(ctx)
	defer cancel()
	for lost := 0; ; {
		began := time.Now()
		res, err := f.u.l.client.Wait(limited, f.event.ProcessID)
		switch {
		case err == nil:
			return f.u.l.told(res), nil
		case fault.Is(err, fault.Unsupported): // an agent of an earlier build
			return f.follow(ctx)
		}
		if time.Since(began) > lostTries*lostPause { // it had answered meanwhile
			lost = 0
		}
		if res, over, err := f.astray(ctx, limited, err, &lost); over {
			return res, err
		}
	}
}
