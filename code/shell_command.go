// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"syscall"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
)

// remember keeps a command of a shell, so that who did not wait for it can ask for its
// result.
func (cc *codeContext) remember(x *cell) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	held := int64(0)
	first := len(cc.recent)
	for first > 0 && len(cc.recent)-first+1 < maxRecent {
		if held += cc.recent[first-1].holds(); held > maxRecentBytes {
			break
		}
		first--
	}
	var kept []*cell
	for i, old := range cc.recent {
		if i >= first || old.waits() {
			kept = append(kept, old)
		} else {
			old.kept.Room.Close()
		}
	}
	cc.recent = append(kept, x)
}

// waits reports whether it has yet to have its turn, or runs.
func (x *cell) waits() bool {
	select {
	case <-x.done:
		return false
	default:
		return true
	}
}

// holds is how much output the command keeps.
func (x *cell) holds() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	data := x.kept.Kept()
	return int64(len(data[0]) + len(data[1]))
}

// waitFor waits for the command on behalf of its caller, if wait is not zero no longer
// than that.
func (x *cell) waitFor(ctx context.Context, wait time.Duration) (ShellResult, error) {
	defer x.leaveUntold()
	var passed <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		passed = t.C
	}
	select {
	case <-x.done:
		return x.shellResult(), x.err
	case <-passed:
		select {
		case <-x.running: // and not before: it is answered that it runs
			x.mu.Lock()
			x.sink = nil
			x.mu.Unlock()
			return x.shellResult(), nil
		case <-x.done:
			return x.shellResult(), x.err
		case <-ctx.Done():
		}
	case <-ctx.Done():
	case <-x.deaf:
	}
	x.mu.Lock()
	err := x.sinkErr
	x.sink = nil
	x.mu.Unlock()
	if err == nil {
		err = ctx.Err()
	}
	if x.r.InterruptOnDisconnect {
		x.kill(context.WithoutCancel(ctx))
	}
	return x.shellResult(), err
}

// shellResult is the result by now.
func (x *cell) shellResult() ShellResult {
	rec := x.cc.record()
	r := ShellResult{Shell: ShellState{Name: rec.Name, ID: rec.ID}}
	r.ProcessID = x.ids.CellID
	select {
	case <-x.done:
	default:
		x.mu.Lock()
		defer x.mu.Unlock()
		data := x.kept.Kept()
		r.Running, r.Stdout, r.Stderr = true, data[0], data[1]
		return r
	}
	out := &x.out
	r.Shell.Restarted, r.Shell.Ended = ofShell(out.Restarted), out.Dead
	r.Stdout, r.Stderr = out.Stdout, out.Stderr
	r.Changes, r.ChangesTotal, r.ChangesComplete = out.Changes, out.ChangesTotal, out.ChangesComplete
	r.SnapshotID = out.SnapshotID
	r.Result = sandbox.Result{
		ExitCode: out.ExitCode, Signal: out.Signal, Cause: out.Cause, Duration: out.Duration,
		StdoutBytes: out.StdoutBytes, StderrBytes: out.StderrBytes,
		StdoutTruncated: out.StdoutTruncated, StderrTruncated: out.StderrTruncated,
	}
	if x.event != nil {
		r.EndedAt, r.Signaled = x.event.At.Add(out.Duration), x.event.Signaled
	}
	if out.Cause != sandbox.CauseNone {
		r.CauseDetail = ofShell(out.CauseDetail)
	}
	if out.Status == Interrupted || out.Status == TimedOut && out.Signal == "" {
		r.Signal = "SIGINT"
	}
	return r
}

// ShellCommand returns the result of one of the last commands of a shell. One that runs is
// waited for as long as wait; zero does not wait.
func (s *Service) ShellCommand(ctx context.Context, c access.Caller, ref, name, id string, wait time.Duration) (ShellResult, error) {
	if wait < 0 || wait > engine.MaxCommandTimeout {
		return ShellResult{}, fault.InvalidField("wait_seconds", "%v is outside 0 to %v seconds", wait.Seconds(), engine.MaxCommandTimeout.Seconds())
	}
	cc, err := s.findShell(ctx, c, access.SandboxesRead, ref, name)
	if err != nil {
		return ShellResult{}, err
	}
	x := cc.command(id)
	if x == nil {
		return s.pastCommand(ctx, c, ref, cc.record(), id, wait)
	}
	if err := x.Await(ctx, wait); err != nil {
		return ShellResult{}, err
	}
	r := x.shellResult()
	if !r.Running && x.err != nil {
		return ShellResult{}, x.err
	}
	return r, nil
}

// Await waits until the command has ended, or wait has passed.
func (x *cell) Await(ctx context.Context, wait time.Duration) error {
	bound, leave := x.s.engine.Bind(ctx)
	defer leave()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-x.done:
		return nil
	default:
	}
	select {
	case <-x.done:
	case <-t.C:
	case <-bound.Done():
		if ctx.Err() == nil {
			return context.Cause(bound)
		}
		return ctx.Err()
	}
	return nil
}

// command returns one of the last commands by its id; nil if it is not among them.
func (cc *codeContext) command(id string) *cell {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	for _, x := range cc.recent {
		if x.ids.CellID == id {
			return x
		}
	}
	return nil
}

// Signal passes a signal on to a command of a shell: to what it has started, as to any process. What ends a program
// ends the command, too, which goes on to nothing more when that program has ended; the shell stays. SIGINT
// interrupts the command as Ctrl-C does, and SIGKILL ends the shell with it where nothing less does.
func (x *cell) Signal(ctx context.Context, sig syscall.Signal) error {
	select {
	case <-x.done:
		return fault.New(fault.State, "the command %s has ended", x.ids.CellID)
	default:
	}
	switch sig {
	case syscall.SIGINT:
		x.interrupt(ctx)
		return nil
	case syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		if x.end(ctx, sig) {
			return nil
		}
		x.interrupt(ctx) // before it is sent, or its shell is of an earlier build
		return nil
	case syscall.SIGKILL:
		x.kill(ctx)
		return nil
	}
	x.mu.Lock()
	h := x.hosted
	x.mu.Unlock()
	if h == nil {
		return fault.New(fault.State, "the command %s has not begun", x.ids.CellID).WithRemedy("send the signal again in a moment")
	}
	return x.u.Client().Signal(ctx, x.ids.CellID, sig, true)
}

// endings are the signals that a command is ended by, in the words of results.
var endings = map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT", syscall.SIGKILL: "SIGKILL"}

// end sends what the command has started a signal that ends programs, and has the shell go on to nothing more of the
// command. It reports false where the shell could not be told.
func (x *cell) end(ctx context.Context, sig syscall.Signal) bool {
	x.mu.Lock()
	k, h := x.kernel, x.hosted
	x.ending = sig
	x.mu.Unlock()
	if k == nil || h == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, agent.SilenceBound)
	defer cancel()
	return k.session.Stop(func() error {
		if err := x.u.Client().Signal(ctx, k.process.ID(), kernel.StopSignal, false); err != nil {
			return err
		}
		return x.u.Client().Signal(ctx, x.ids.CellID, sig, true)
	}) == nil
}

// endedBy makes the result of a command that a signal was to end, and that did not go on, that of a program which the
// signal ended.
func (x *cell) endedBy() {
	x.mu.Lock()
	sig := x.ending
	x.mu.Unlock()
	out := &x.out
	switch {
	case sig == 0 || out.Dead || out.Cause != sandbox.CauseNone:
		return
	case out.ExitCode == exitInterrupted, out.ExitCode == 128+int(kernel.StopSignal), out.ExitCode == 128+int(sig):
		out.Status, out.ExitCode, out.Signal = OK, 128+int(sig), endings[sig]
	}
}

// kill ends the command, whatever it does about it: what lives on is killed behind the caller's back.
func (x *cell) kill(ctx context.Context) {
	x.mu.Lock()
	x.killed = true
	x.mu.Unlock()
	if !x.end(ctx, syscall.SIGKILL) {
		x.interrupt(ctx)
	}
	x.s.engine.Go(func(ctx context.Context) {
		for range killTries {
			_ = x.Await(ctx, kernel.DefaultGrace)
			x.mu.Lock()
			k := x.kernel
			x.mu.Unlock()
			if k == nil || ctx.Err() != nil {
				return
			}
			if err := x.killYounger(ctx, k); err != nil {
				return
			}
			x.interrupt(ctx)
		}
		_ = x.Await(ctx, killPause)
		x.mu.Lock()
		k := x.kernel
		x.mu.Unlock()
		if k != nil && ctx.Err() == nil {
			if err := k.process.Kill(ctx); err != nil {
				x.s.log.Warn("the shell of a command that does not end cannot be killed", "sandbox", x.u.Sandbox(), "cell", x.ids.CellID, "error", err)
			}
		}
	})
}

// killYounger kills what was started in the shell since the command began.
func (x *cell) killYounger(ctx context.Context, k *codeKernel) error {
	const slack = 20 * time.Millisecond // of the kernel's times, which are 10 ms apart
	err := k.process.KillYounger(ctx, x.event.At.Add(-slack))
	if fault.Is(err, fault.State) {
		return nil // the shell has ended, and what follows it will tell
	}
	return err
}

// Bounds of ending a command of a shell that does not heed an interrupt.
const (
	killTries = 3
	killPause = time.Second
)

// endAtTimeout ends a command of a shell that was interrupted at its timeout and goes on,
// without the shell: it kills what was started since the command began, and lets the
// interrupt have the rest. What it cannot end keeps its error, and the shell is ended.
func (x *cell) endAtTimeout(ctx context.Context, k *codeKernel, res kernel.Outcome, err error) (kernel.Outcome, error) {
	for try := 0; try < killTries && fault.Is(err, fault.Timeout) && x.event != nil && x.event.Type == sandbox.EventExec; try++ {
		if killErr := x.killYounger(ctx, k); killErr != nil {
			return res, err
		}
		res, err = k.session.Wait(ctx, kernel.Cell{Timeout: killPause, Grace: time.Millisecond}, x.handler(ctx))
	}
	return res, err
}
