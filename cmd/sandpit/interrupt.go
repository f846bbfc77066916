// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
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

// interrupted gives the status of an interruption where that is why err came
// about, and else err.
func interrupted(ctx context.Context, err error) error {
	if by, ok := errors.AsType[interruption](context.Cause(ctx)); ok && err != nil {
		return &exit{status: by.status()}
	}
	return err
}

// interruptible gives a context that the first SIGINT, SIGTERM, SIGHUP or
// SIGPIPE ends, with an interruption as its cause; the second does what it does
// to any program. stop gives signals back.
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
		select {
		case s := <-got:
			cancel(interruption{s})
		case s := <-broken:
			cancel(interruption{s})
		case <-ctx.Done():
		}
		signal.Stop(got)
	}()
	return ctx, func() {
		cancel(nil)
		<-done
		signal.Stop(broken)
	}
}

// known gives the ids of the commands that a sandbox has already. A sandbox that
// is not up has none, and any other error will show when the command is run.
func known(ctx context.Context, cl *client.Client, ref string) map[string]bool {
	all, _ := cl.Processes(ctx, ref)
	ids := make(map[string]bool, len(all))
	for _, p := range all {
		ids[p.ProcessID] = true
	}
	return ids
}

// killNew ends the command that r began: the first that is new and is the same
// text. The answer that would have told its id was given up.
func (a *app) killNew(ctx context.Context, cl *client.Client, ref string, r v1.Exec, before map[string]bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killBound)
	defer cancel()
	all, err := cl.Processes(ctx, ref)
	if err != nil {
		a.warn("the command may go on: %s", whole(err))
		return
	}
	slices.SortFunc(all, func(x, y v1.Process) int { return x.StartedAt.Compare(y.StartedAt) })
	for _, p := range all {
		if before[p.ProcessID] || p.Status != "running" || !same(p, r) {
			continue
		}
		if err := cl.Kill(ctx, ref, p.ProcessID); err != nil {
			a.warn("the command may go on as process %s: %s", p.ProcessID, whole(err))
		}
		return
	}
}

// same tells whether p is of r's text; what a record keeps of a text may be cut.
func same(p v1.Process, r v1.Exec) bool {
	if r.Command != nil {
		return strings.HasPrefix(*r.Command, strings.TrimSuffix(p.Command, "…")) && p.Command != ""
	}
	return len(p.Argv) > 0 && len(p.Argv) <= len(r.Argv) && slices.Equal(p.Argv, r.Argv[:len(p.Argv)])
}
