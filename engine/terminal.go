// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/pausing"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// TerminalRequest is an interactive command.
type TerminalRequest struct {
	Shell string // at most one of Shell and Argv; neither: a login shell
	Argv  []string
	Cols  uint16 // 1 to 1000; zero: 80
	Rows  uint16 // 1 to 1000; zero: 24
	Term  string // the kind of terminal; empty: xterm-256color
	User  string // "sandbox" or "root"; empty: sandbox
	Cwd   string
	Env   map[string]string
}

// ShellText is what the shell of the terminal runs: a login shell, where nothing else
// is asked for.
func (r *TerminalRequest) ShellText() string {
	if r.Shell == "" && len(r.Argv) == 0 {
		return sandbox.LoginShell
	}
	return r.Shell
}

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

// Bounds of a terminal.
const (
	maxTermSize = 1000
	maxTermName = 64
)

// terminalLog is how much of a terminal's output is kept: of the last of it.
const terminalLog = 4 << 20

// Terminal starts a command at a terminal. It has no time limit.
func (e *Engine) Terminal(ctx context.Context, c access.Caller, ref string, r TerminalRequest) (*Terminal, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	cmd, err := e.terminalCommand(r)
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
	ev, err := u.intend(sctx, cmd, sandbox.EventTerminal)
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

func (e *Engine) terminalCommand(r TerminalRequest) (agent.Command, error) {
	var k check.Fields
	r.Shell = r.ShellText()
	k.Command(r.Shell, r.Argv)
	k.Env(r.Env)
	cmd := agent.Command{
		Shell: r.Shell, Argv: r.Argv, Cwd: k.Cwd(r.Cwd, r.User), Env: r.Env, Terminal: checkTerminal(&k, r.Cols, r.Rows, r.Term),
		StreamStdin: true, MaxStdout: terminalLog, MaxStderr: 1, Rolling: true,
	}
	var err error
	if cmd.User, err = k.User(r.User, e.settings.Load().ForbidRoot); err != nil {
		return cmd, err
	}
	return cmd, k.Err()
}

// checkTerminal checks what a terminal is to be, and fills in what is left out.
func checkTerminal(k *check.Fields, cols, rows uint16, kind string) *agent.Terminal {
	if cols > maxTermSize {
		k.Bad("cols", "%d is outside 1 to %d", cols, maxTermSize)
	}
	if rows > maxTermSize {
		k.Bad("rows", "%d is outside 1 to %d", rows, maxTermSize)
	}
	if len(kind) > maxTermName || !check.Plain(kind) {
		k.Bad("term", "%q is not a valid terminal type of at most %d bytes", sandbox.Clip(kind, 40), maxTermName)
	}
	t := &agent.Terminal{Cols: cols, Rows: rows, Term: kind}
	if t.Cols == 0 {
		t.Cols = 80
	}
	if t.Rows == 0 {
		t.Rows = 24
	}
	if t.Term == "" {
		t.Term = "xterm-256color"
	}
	return t
}

// Next returns the next output; io.EOF when the command has ended, and then
// Result holds.
func (t *Terminal) Next(ctx context.Context) (sandbox.Frame, error) {
	fr, err := t.Process.Next(ctx)
	if err == io.EOF { // itself: a connection that broke may wrap it
		t.over(func(context.Context) sandbox.Result { return t.u.l.told(t.Process.Result()) })
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
	for range hangUpTries {
		rec, err := t.u.l.client.Process(ctx, t.ev.ProcessID)
		if err == nil && rec.Result != nil {
			return t.u.l.told(*rec.Result)
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
			return t.u.l.told(*rec.Result)
		}
	}
	return f.killed(sandbox.CauseKilled, "its terminal was closed")
}
