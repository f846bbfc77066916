// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/agent"
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

// codeKernel is a kernel that was up. Its session and carrier are for who has the context's
// turn, but for the session's Interrupt.
type codeKernel struct {
	session *kernel.Session
	carrier *carrier
	l       *live
	process string
}

// haveKernel gives the context's kernel, a new one if it has none, and then why there is none any
// more. The caller has the turn.
func (e *Engine) haveKernel(ctx context.Context, u *use, cc *codeContext) (k *codeKernel, restarted string, err error) {
	cc.mu.Lock()
	k, rec := cc.kernel, cc.rec
	cc.mu.Unlock()
	if k != nil && k.session.Status() != kernel.Dead {
		return k, "", nil
	}
	cc.start(true)
	defer cc.start(false)
	if rec.Starts > 0 {
		restarted = orText(rec.Ended, "its kernel had ended")
	}
	if rec.ProcessID != "" { // no error if it has ended, and better twice than two kernels
		if err := e.killKernel(ctx, u.l, rec.ProcessID); err != nil {
			return nil, "", u.fail(ctx, err)
		}
	}
	k, err = e.startKernel(ctx, u, cc, rec)
	return k, restarted, err
}

func (cc *codeContext) start(begins bool) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	cc.starting = begins
}

func orText(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func (e *Engine) killKernel(ctx context.Context, l *live, process string) error {
	ctx, cancel := context.WithTimeout(ctx, killBound)
	defer cancel()
	err := l.client.Kill(ctx, process, sandbox.CauseKilled)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// endOrphan ends the kernel of a context that is no more. The caller has the turn, and has
// entered the group.
func (e *Engine) endOrphan(b *box, cc *codeContext) {
	cc.mu.Lock()
	k, gone := cc.kernel, cc.gone
	cc.mu.Unlock()
	if !gone || k == nil {
		return
	}
	e.group.spawn(func(ctx context.Context) {
		if err := e.killKernel(ctx, k.l, k.process); err != nil && b.standing() == k.l && ctx.Err() == nil {
			e.log.Warn("the kernel of a context that is no more cannot be killed; the next start does it", "sandbox", b.id, "process", k.process, "error", err)
		}
	})
}

// startKernel starts a kernel: a process of the sandbox, which is no use of it while it
// waits for cells. Its event is completed when it ends, by this server or the next.
func (e *Engine) startKernel(ctx context.Context, u *use, cc *codeContext, rec sandbox.Context) (*codeKernel, error) {
	language := kernel.Language(rec.Language)
	cmd := agent.Command{
		ID: sandbox.NewProcessID(), Argv: kernel.Command(language), Cwd: rec.Cwd, User: rec.User, Env: rec.Env, StreamStdin: true,
		MaxStdout: maxKernelStdout, MaxStderr: maxKernelStderr,
	}
	if err := u.prepare(ctx, &cmd); err != nil {
		return nil, err
	}
	own, err := e.adoptUse(u.b, u.l, &sandbox.Event{Actor: u.who.actor, Via: u.who.via})
	if err != nil {
		return nil, err
	}
	bounds := kernel.Options{MaxStdout: maxKernelStdout, MaxStderr: maxKernelStderr}
	if rec.Name != "" { // of a shell, which may live for ever
		cmd.Rolling, cmd.MaxStdout, cmd.MaxStderr, bounds = true, shellLog, shellLog, kernel.Options{}
	}
	// The session masks what cells say, and not the agent: a short value would stand in
	// the messages that are between it, too. Nobody else reads a kernel's log; see Follow.
	bounds.Redact, cmd.Redact = cmd.Redact, nil
	ev, err := own.intendKernel(ctx, cmd, cc.eventID(), language)
	if err != nil {
		own.end()
		return nil, err
	}
	p, err := u.l.client.Start(ctx, cmd)
	if err != nil {
		err = u.fail(ctx, err)
		newFollower(own, ev, 0).notBegun(ctx, err)
		own.end()
		return nil, err
	}
	k := &codeKernel{carrier: newCarrier(own, ev, p, 0), l: u.l, process: cmd.ID}
	ready, cancel := context.WithTimeout(ctx, kernelBound)
	defer cancel()
	k.session, err = kernel.Start(ready, language, k.carrier, bounds)
	if err != nil {
		if ready.Err() != nil && ctx.Err() == nil {
			err = fault.New(fault.Timeout, "the %s kernel was not ready after %v", language, kernelBound).
				WithRemedy("ask again when the sandbox has less to do")
		}
		if killErr := e.killKernel(context.WithoutCancel(ctx), u.l, cmd.ID); killErr != nil {
			e.log.Warn("a kernel that was never ready cannot be killed", "sandbox", u.b.id, "process", cmd.ID, "error", killErr)
		}
	}
	if err == nil {
		cc.mu.Lock()
		cc.kernel = k
		cc.rec.ProcessID, cc.rec.Ended, cc.rec.RunningID, cc.rec.Cells = cmd.ID, "", "", 0
		cc.rec.Starts++
		cc.mu.Unlock()
	}
	e.watchKernel(own, ev, cc, k)
	if err != nil {
		return nil, u.fail(ctx, err)
	}
	return k, nil
}

// intendKernel writes the row of a kernel that is about to begin.
func (u *use) intendKernel(ctx context.Context, cmd agent.Command, contextID string, l kernel.Language) (*sandbox.Event, error) {
	s := u.b.record.Load()
	if s == nil {
		return nil, noSandbox(string(u.b.id))
	}
	ev := u.who.event(sandbox.EventContext, s, u.e.now())
	ev.Done, ev.OK = false, false
	ev.ProcessID, ev.User, ev.Cwd, ev.Command = cmd.ID, cmd.User, cmd.Cwd, cmd.Argv[0]
	ev.ContextID, ev.Language = contextID, string(l)
	err := u.e.store.Update(ctx, func(tx store.Tx) error { return tx.Events().Append(ev) })
	if err != nil {
		return nil, err
	}
	u.e.metrics.happened([]*sandbox.Event{ev})
	return ev, nil
}

// eventID is the id of the context in events.
func (cc *codeContext) eventID() string {
	if cc.alone {
		return ""
	}
	return cc.record().ID
}

// watchKernel sees a kernel to its end. It takes own over, which meanwhile keeps the
// sandbox from nothing.
func (e *Engine) watchKernel(own *use, ev *sandbox.Event, cc *codeContext, k *codeKernel) {
	own.b.unhold(e.now(), own.what)
	e.group.spawn(func(ctx context.Context) {
		f := newFollower(own, ev, 0)
		res, err := f.await(ctx)
		if err == nil {
			cc.over(k, kernelEnd(res))
			e.saveContext(ctx, cc)
		}
		// Whoever has the turn may still read the kernel's last words.
		_ = cc.turn.take(context.WithoutCancel(ctx))
		k.carrier.close()
		cc.turn.give()
		own.b.occupy()
		if err != nil {
			f.abandon()
			return
		}
		f.conclude(ctx, res)
	})
}

// kernelEnd says how a kernel ended, for people.
func kernelEnd(res agent.Result) string {
	if res.Cause == sandbox.CauseRestore {
		return "its sandbox was " + res.CauseDetail
	}
	return "its kernel ended: " + exitOf(res).String()
}

// occupy begins a use of a sandbox that may be down.
func (b *box) occupy() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy++
}

// over notes that a kernel is no more, if it is the context's.
func (cc *codeContext) over(k *codeKernel, why string) {
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

// saveContext writes a context that is in the store already.
func (e *Engine) saveContext(ctx context.Context, cc *codeContext) {
	cc.mu.Lock()
	saved := cc.saved && !cc.gone
	cc.mu.Unlock()
	if !saved {
		return
	}
	ctx, cancel := aside(ctx)
	defer cancel()
	if err := e.store.Update(ctx, cc.put); err != nil {
		e.log.Error("the end of a context's kernel cannot be recorded; the next start does it", "sandbox", cc.b.id, "error", err)
	}
}
