// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package interrupt ends a context by a signal, and says of a write that nobody reads it.
package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"sandpit.dev/cmd/sandpit/internal/exit"
)

// Error is the cause of a context that a signal ended.
type Error struct{ Signal os.Signal }

func (i Error) Error() string { return "interrupted by " + i.Signal.String() }

// Status is what shells expect of a program that a signal ended.
func (i Error) Status() int {
	if n, ok := i.Signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 128 + int(syscall.SIGINT)
}

// Ended returns the status of an interruption where that is why err came
// about, and else err.
func Ended(ctx context.Context, err error) error {
	if by, ok := errors.AsType[Error](context.Cause(ctx)); ok && err != nil {
		return &exit.Error{Status: by.Status()}
	}
	return err
}

// Context returns a context that the first SIGINT, SIGTERM or SIGHUP ends, or a
// SIGPIPE for what is read of this program, with an interruption as its cause; the
// second has its default effect. stop restores the default for all of them.
func Context(ctx context.Context) (_ context.Context, stop func()) {
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
				cancel(Error{s})
			case s := <-broken:
				// It comes for connections as well, whose writes tell of it themselves: a
				// server that is restarted is no reason to end.
				if !outputBroken() {
					continue
				}
				cancel(Error{s})
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
