// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// shellText is a command as a shell reads it.
func shellText(r *engine.ExecRequest) string {
	if r.Shell != "" {
		return r.Shell
	}
	words := make([]string, len(r.Argv))
	for i, a := range r.Argv {
		words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// ShellExec runs a command in a shell, after those that came before, and makes the
// shell if there is none of that name. It is as Exec in all else, but: a timeout, and
// KillOnDisconnect, interrupt the command and kill what does not heed that, and end the
// shell only if it does not come to itself; and a Wait that passes before the
// command's turn is fault.State, and it does not run.
func (s *Service) ShellExec(ctx context.Context, c access.Caller, ref, name string, r engine.ExecRequest, sink func(sandbox.Frame) error) (ShellResult, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesWrite); err != nil {
		return ShellResult{}, err
	}
	want, err := s.checkShellCommand(name, &r, sink != nil)
	if err != nil {
		return ShellResult{}, err
	}
	u, err := s.engine.Use(ctx, c, access.SandboxesWrite, ref, useShell)
	if err != nil {
		return ShellResult{}, err
	}
	began := time.Now()
	if !r.Mark.Empty() {
		if err := u.CheckRecord(ctx, r.Mark.Texts()); err != nil {
			u.End()
			return ShellResult{}, err
		}
	}
	cc, err := s.queueShell(ctx, u, want, r)
	if err != nil {
		u.End()
		return ShellResult{}, err
	}
	out := shellSink{give: sink, left: [2]int64{r.MaxStdout, r.MaxStderr}}
	x := s.shellCell(u, cc, c, r, out.sink())
	cc.remember(x)
	x.started = r.Started
	s.engine.Go(func(own context.Context) { x.do(keyed.Carry(own, ctx)) })
	if r.Wait > 0 {
		r.Wait = max(r.Wait-time.Since(began), 1)
	}
	res, err := x.waitFor(ctx, r.Wait)
	if sink != nil {
		res.Stdout, res.Stderr = nil, nil
		res.StdoutTruncated, res.StderrTruncated = !res.Running && (out.cut[0] || x.gap || x.cut[0]), !res.Running && (out.cut[1] || x.gap || x.cut[1])
	}
	s.engine.Answered(c.Project, time.Since(began))
	return res, err
}

// checkShellCommand checks a request, and returns the shell that it may have to make.
func (s *Service) checkShellCommand(name string, r *engine.ExecRequest, streamed bool) (sandbox.Context, error) {
	var k check.Fields
	cmd, err := s.engine.CheckCommand(*r)
	if err := k.Take(err); err != nil {
		return sandbox.Context{}, err
	}
	if !streamed { // beside what CheckCommand allows
		k.Bytes("max_stdout", min(cmd.MaxStdout, engine.MaxStreamed), engine.MaxCollected)
		k.Bytes("max_stderr", min(cmd.MaxStderr, engine.MaxStreamed), engine.MaxCollected)
	}
	if r.Cwd != "" {
		k.Bad("cwd", "is the shell's own; change it by cd, or make the shell with it")
	}
	if len(r.Stdin) > MaxShellStdin {
		k.Bad("stdin", "has %d bytes, more than %d in a shell; put it into a file", len(r.Stdin), MaxShellStdin)
	}
	want, err := s.checkShell(&k, ShellRequest{Name: name, User: r.User})
	if err != nil {
		return want, err
	}
	r.Timeout, r.MaxStdout, r.MaxStderr = cmd.Timeout, cmd.MaxStdout, cmd.MaxStderr
	return want, k.Err()
}

// queueShell finds the shell of a command, or makes it, and takes its lock.
func (s *Service) queueShell(ctx context.Context, u *engine.Use, want sandbox.Context, r engine.ExecRequest) (*codeContext, error) {
	all, err := s.loadFor(ctx, u, &want)
	if err != nil {
		return nil, err
	}
	here := ctx
	if r.Wait > 0 {
		var cancel context.CancelFunc
		here, cancel = context.WithTimeout(ctx, r.Wait)
		defer cancel()
	}
	for {
		cc, err := all.shell(want)
		if err != nil {
			return nil, err
		}
		if err := sameUser(cc.record(), want, r); err != nil {
			return nil, err
		}
		ok, err := cc.acquire(here)
		switch {
		case err != nil && here.Err() != nil && ctx.Err() == nil:
			return nil, fault.New(fault.State, "the shell %q was busy with other commands for %v; this one was not run", want.Name, r.Wait).
				WithRemedy("wait longer, interrupt what runs in it, or use another shell")
		case err != nil:
			return nil, err
		case ok:
			return cc, nil
		}
	}
}

// shell returns the shell of a name, new or not.
func (all *contexts) shell(want sandbox.Context) (*codeContext, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if cc := all.shellLocked(want.Name); cc != nil {
		return cc, nil
	}
	return all.addLocked(want, false)
}

// shellSink makes frames of a command's output, up to a bound of each stream.
type shellSink struct {
	give func(sandbox.Frame) error // nil: the caller takes nothing
	seq  int64
	left [2]int64
	cut  [2]bool
}

func (s *shellSink) sink() *Sink {
	if s.give == nil {
		return nil
	}
	return &Sink{
		Stdout: func(b []byte) error { return s.frame(sandbox.Stdout, 0, b) },
		Stderr: func(b []byte) error { return s.frame(sandbox.Stderr, 1, b) },
	}
}

func (s *shellSink) frame(stream sandbox.Stream, i int, b []byte) error {
	if int64(len(b)) > s.left[i] {
		b, s.cut[i] = b[:s.left[i]], true
	}
	if len(b) == 0 {
		return nil
	}
	s.left[i] -= int64(len(b))
	s.seq++
	return s.give(sandbox.Frame{Seq: s.seq, Stream: stream, At: time.Now().UTC(), Data: slices.Clone(b)})
}
