// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command sandpit-bench measures sandpit on this machine, beside what else a user would pick.
// `sandpit bench` runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sandpit.dev/fault"
)

// Exit statuses.
const (
	statusFailed = 1
	statusMisuse = 2
)

// interruption is the cause of a context that a signal ended.
type interruption struct{ sig syscall.Signal }

func (i interruption) Error() string { return "interrupted by " + i.sig.String() }

// misuse is a mistake in the command line.
type misuse struct{ error }

func main() {
	ctx, stop := interruptible()
	defer stop(nil)
	c := newCommand(os.Stdout, progress{os.Stderr, stop}, os.Getenv)
	os.Exit(report(ctx, c.ExecuteContext(ctx)))
}

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP ends, with an
// interruption as its cause; the second does what it does to any program.
func interruptible() (_ context.Context, stop context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	// Of a pipe that breaks the write tells: the signal would end us before what we started.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		defer signal.Stop(got)
		select {
		case s := <-got:
			cancel(interruption{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// progress is a writer that ends the measurement when its reader is gone.
type progress struct {
	w    io.Writer
	stop context.CancelCauseFunc
}

func (p progress) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.stop(interruption{syscall.SIGPIPE})
	}
	return n, err
}

// report says what went wrong, the cause and then the next step, and returns the status to exit with.
func report(ctx context.Context, err error) int {
	if err == nil {
		return 0
	}
	if by, ok := errors.AsType[interruption](context.Cause(ctx)); ok {
		return 128 + int(by.sig)
	}
	fmt.Fprintln(os.Stderr, "sandpit-bench: "+err.Error())
	if _, ok := errors.AsType[misuse](err); ok {
		fmt.Fprintln(os.Stderr, "→ see: sandpit-bench --help")
		return statusMisuse
	}
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Remedy != "" {
		fmt.Fprintln(os.Stderr, "→ "+e.Remedy)
	}
	return statusFailed
}

// noArgs refuses arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse{fmt.Errorf("%q is not a flag, and there are no arguments", args[0])}
	}
	return nil
}
