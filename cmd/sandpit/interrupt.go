// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// killBound is how long the kill after an interrupt may take.
const killBound = 10 * time.Second

// interruption is the cause of a context that a signal ended.
type interruption struct{ sig os.Signal }

func (i interruption) Error() string { return "interrupted by " + i.sig.String() }

// status is what shells expect of a program that a signal ended.
func (i interruption) status() int {
	if n, ok := i.sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 128 + int(syscall.SIGINT)
}

// interrupted returns the status of an interruption where that is why err came
// about, and else err.
func interrupted(ctx context.Context, err error) error {
	if by, ok := errors.AsType[interruption](context.Cause(ctx)); ok && err != nil {
		return &exit{status: by.status()}
	}
	return err
}

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP ends, or a
// SIGPIPE for what is read of this program, with an interruption as its cause; the
// second does what it does to any program. stop gives signals back.
func interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	got, broken := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// A broken pipe is told twice, by the kernel and by the write that failed. To
	// give the signal back in between would end this process at once.
	signal.Notify(broken, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer signal.Stop(got)
		for {
			select {
			case s := <-got:
				cancel(interruption{s})
			case s := <-broken:
				// It comes for connections as well, whose writes tell of it themselves: a
				// server that is restarted is no reason to end.
				if !outputBroken() {
					continue
				}
				cancel(interruption{s})
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
		signal.Stop(broken)
	}
}

// attended runs a command, which an interrupt kills: its error is that of the
// interruption then. Until the server has told which process it is, an interrupt
// waits, so that nothing is left behind.
func (a *app) attended(ctx context.Context, run runner, r v1.Exec, fn func(client.Frame) error) (*v1.ExecOutcome, error) {
	steady, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var p *client.Process
	known, over := make(chan struct{}), make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		defer cancel()
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		t := time.NewTimer(killBound)
		defer t.Stop()
		select {
		case <-over:
		case <-known:
			a.kill(ctx, p)
		case <-t.C:
			a.warn("the command may go on: the server does not say which process it is")
		}
	})
	out, err := run(steady, r, func(q *client.Process) {
		if p == nil {
			p = q
			close(known)
		}
	}, fn)
	close(over)
	watch.Wait()
	if p != nil && pipeBroken(err) {
		a.kill(ctx, p)
	}
	if ctx.Err() != nil {
		return nil, interrupted(ctx, ctx.Err())
	}
	return out, err
}

// kill ends a command, whether or not ctx is over.
func (a *app) kill(ctx context.Context, p *client.Process) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killBound)
	defer cancel()
	if err := p.Kill(ctx); err != nil {
		a.warn("the command may go on as process %s: %s", p.ID(), whole(err))
	}
}
