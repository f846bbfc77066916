// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Bounds of kernels.
const (
	kernelBound     = 30 * time.Second // from its start until it is ready
	maxKernelStdout = agent.MaxOutput  // bytes in its whole life, results included
	maxKernelStderr = 16 << 20
)

// maxDetail is how many bytes of a text for people are kept.
const maxDetail = 1024

// reason is the text of an error for a record: what the caller may see of it.
func reason(err error) string { return sandbox.Clip(fault.As(err).Message, maxDetail) }

// codeKernel is a kernel that was up. Its session, and reading from its process, are for who has
// the context's lock, but for the session's Interrupt.
type codeKernel struct {
	session *kernel.Session
	process *engine.Background
}

// haveKernel returns the context's kernel. If that has ended, it starts another, and returns why the
// last one had ended. put, which may be nil, is committed with the start of one. The caller has the lock.
func (cc *codeContext) haveKernel(ctx context.Context, u *engine.Use, put func(store.Tx) error) (k *codeKernel, restarted string, err error) {
	cc.mu.Lock()
	k, rec := cc.kernel, cc.rec
	cc.mu.Unlock()
	if k != nil && k.session.Status() != kernel.Dead {
		return k, "", nil
	}
	cc.setStarting(true)
	defer cc.setStarting(false)
	if rec.Starts > 0 {
		restarted = orText(rec.Ended, "its kernel had ended")
	}
	if rec.ProcessID != "" { // no error if it has ended, and better twice than two kernels
		if err := u.Kill(ctx, rec.ProcessID); err != nil {
			return nil, "", u.Fail(ctx, err)
		}
	}
	k, err = cc.startKernel(ctx, u, rec, put)
	return k, restarted, err
}

func (cc *codeContext) setStarting(is bool) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	cc.starting = is
}

func (cc *codeContext) currentKernel() *codeKernel {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	return cc.kernel
}

func orText(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// killOrphan kills the kernel of a context that was deleted. The caller has the lock, and
// is in a verb.
func (cc *codeContext) killOrphan() {
	cc.mu.Lock()
	k, gone := cc.kernel, cc.isGone()
	cc.mu.Unlock()
	if !gone || k == nil {
		return
	}
	s := cc.in.s
	s.engine.Go(func(ctx context.Context) {
		if err := k.process.Kill(ctx); err != nil && k.process.Up() && ctx.Err() == nil {
			s.log.Warn("the kernel of a context that is no more cannot be killed; the next start does it", "sandbox", cc.in.id, "process", k.process.ID(), "error", err)
		}
	})
}

// startKernel starts a kernel: a process of the sandbox, which is no use of it while it
// waits for cells.
func (cc *codeContext) startKernel(ctx context.Context, u *engine.Use, rec sandbox.Context, put func(store.Tx) error) (_ *codeKernel, err error) {
	language := kernel.Language(rec.Language)
	cmd := agent.Command{
		ID: sandbox.NewProcessID(), Argv: kernel.Command(language), Cwd: rec.Cwd, User: rec.User, Env: rec.Env, StreamStdin: true,
		MaxStdout: maxKernelStdout, MaxStderr: maxKernelStderr,
	}
	if err := u.Prepare(ctx, &cmd); err != nil {
		return nil, err
	}
	bounds := kernel.Options{MaxStdout: maxKernelStdout, MaxStderr: maxKernelStderr}
	if rec.Name != "" { // of a shell, which may live for ever
		cmd.Rolling, cmd.MaxStdout, cmd.MaxStderr, bounds = true, shellLog, shellLog, kernel.Options{}
	}
	// The session masks what cells say, and not the agent: a short value would stand in
	// the messages that are between it, too. No caller reads a kernel's log, see Private.
	bounds.Redact, cmd.Redact = cmd.Redact, nil
	ev, err := u.NewEvent(sandbox.EventContext)
	if err != nil {
		return nil, err
	}
	ev.ContextID, ev.Language = cc.eventID(), rec.Language
	cc.change(func(rec *sandbox.Context) {
		rec.ProcessID, rec.Ended, rec.RunningID, rec.Cells, rec.State = cmd.ID, "", "", 0, nil // of the last one
		rec.Starts++
	})
	defer func() {
		if err != nil {
			cc.change(func(now *sandbox.Context) {
				now.ProcessID, now.Ended, now.RunningID, now.Cells, now.State, now.Starts = rec.ProcessID, rec.Ended, rec.RunningID, rec.Cells, rec.State, rec.Starts
			})
		}
	}()
	p, begun, err := u.StartBackground(ctx, cmd, ev, put)
	if begun && put != nil {
		cc.setSaved()
	}
	if err != nil {
		return nil, err
	}
	k := &codeKernel{process: p}
	ready, cancel := context.WithTimeout(ctx, kernelBound)
	defer cancel()
	k.session, err = kernel.Start(ready, language, &transport{Background: p, fresh: true}, bounds)
	if err != nil {
		if ready.Err() != nil && ctx.Err() == nil {
			err = fault.New(fault.Timeout, "the %s kernel was not ready after %v", language, kernelBound).
				WithRemedy("ask again when the sandbox has less to do")
		}
		if killErr := p.Kill(context.WithoutCancel(ctx)); killErr != nil {
			cc.in.s.log.Warn("a kernel that was never ready cannot be killed", "sandbox", cc.in.id, "process", cmd.ID, "error", killErr)
		}
	}
	if err == nil {
		cc.mu.Lock()
		cc.kernel = k
		cc.mu.Unlock()
	}
	cc.watch(k)
	if err != nil {
		return nil, u.Fail(ctx, err)
	}
	return k, nil
}

// eventID is the id of the context in events.
func (cc *codeContext) eventID() string {
	if cc.alone {
		return ""
	}
	return cc.record().ID
}

// watch follows a kernel to its end.
func (cc *codeContext) watch(k *codeKernel) {
	k.process.Watch(func(ctx context.Context, res *sandbox.Result) {
		if res != nil {
			cc.setEnded(k, kernelEnd(*res))
			cc.save(ctx)
		}
		// Another goroutine with the lock may still read the kernel's last words.
		cc.acquireAtAll()
		k.process.Close()
		cc.release()
	})
}

// kernelEnd says how a kernel ended, for people.
func kernelEnd(res sandbox.Result) string {
	if res.Cause == sandbox.CauseRestore {
		return "its sandbox was " + res.CauseDetail
	}
	return "its kernel ended: " + exitOf(res).String()
}

// setEnded notes that a kernel has ended, if it is the context's.
func (cc *codeContext) setEnded(k *codeKernel, why string) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.kernel != k {
		return
	}
	cc.kernel = nil
	if cc.rec.Ended == "" {
		cc.rec.Ended = sandbox.Clip(why, maxDetail)
	}
}
