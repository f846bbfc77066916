// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/terminal"
	"sandpit.dev/fault"
)

func newAttach(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "attach [flags] SANDBOX PROCESS",
		Short: "Join a running process: its output, and our input for it",
		Long: `Join a running process: see what it writes from now on, and give it our standard input where it was started
with a streamed one (exec --detach -i, or -t for a terminal). The exit status is the process's, or 125 if it has no terminal and
output is missing.

At a process with a terminal, Ctrl-P Ctrl-Q leaves it to itself, and every other key is the process's. At
one without, Ctrl-C and SIGTERM are sent to it, and it goes on if we are killed.

A PROCESS is an id, the beginning of one, name:NAME, pid:N (its number inside), or last.`,
		Example: `  sandpit attach web p1q2r3s4t5u6v7w8
  id=$(sandpit exec --detach -t web -- python); sandpit attach --history web $id`,
		Args: app.Takes(2, 2),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeProcess(a, c, args, typed)
		},
	}
	history := c.Flags().Bool("history", false, "show first what it has written so far")
	noStdin := new(bool)
	noStdinFlag(c.Flags(), noStdin, "leave standard input alone")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return exit.Own(err)
		}
		p, err := openProcess(c.Context(), cl, args[0], args[1])
		if err != nil {
			return exit.Own(err)
		}
		rec, err := p.Get(c.Context())
		if err != nil {
			return exit.Own(err)
		}
		at := &attached{App: a, process: p, tty: rec.Tty}
		if !*history {
			at.cursor = rec.LastSeq
		}
		if !*noStdin {
			at.keys = a.Stdin
		}
		return at.run(c.Context())
	}
	return c
}

// attached is a process that we are joined with.
type attached struct {
	*app.App
	process *client.Process
	tty     bool
	cursor  int64
	recent  int64    // without a cursor: of what it has written, about the last so many bytes; zero: all
	keys    *os.File // nil: no input
	leave   []byte   // the detach keys of a terminal; nil: the default
	hangUp  bool     // our end by a signal is its end
	missed  bool     // not all of its output came; known when show has returned
}

var errDetached = errors.New("the detach keys were typed")

func (at *attached) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	got := make(chan os.Signal, 4) // before the terminal is changed, so that none ends us and leaves it so
	signal.Notify(got, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(got)
	resizes, stop := terminal.Resizes()
	defer stop()
	restore, err := at.raw(ctx)
	if err != nil {
		return exit.Own(err)
	}
	defer restore()
	if at.keys != nil {
		// This goroutine stays in its last read until the process ends, which is
		// right after: a read of a terminal cannot be called back.
		go func() {
			if err := at.feed(ctx); err != nil {
				cancel(err)
			}
		}()
	}
	done := make(chan error, 1)
	var out *v1.Process
	go func() { done <- at.show(ctx, &out) }()
	for {
		select {
		case err := <-done:
			restore()
			switch {
			case errors.Is(context.Cause(ctx), errDetached):
				at.Warn("detached; the process goes on")
				return nil
			case err != nil:
				return exit.Own(err)
			case out == nil || out.ExitCode == nil:
				return exit.Own(fault.New(fault.Unavailable, "the server did not tell how the process ended"))
			}
			if out.Cause != "" {
				at.Warn("the process was ended: %s", because(out.Cause, out.CauseDetail, signaledBy(out.SignaledBy, out.SignaledWith)))
			}
			if at.missed && !at.tty {
				return exit.Own(fault.New(fault.TooLarge, "not all output is here; the process itself ended with %d", *out.ExitCode).
					WithRemedy("write it to a file in the sandbox, and copy that out with sandpit cp"))
			}
			return exit.Passing(*out.ExitCode)
		case s := <-got:
			if s == syscall.SIGHUP || at.tty {
				restore()
				at.end()
				return &exit.Error{Status: interrupt.Error{Signal: s}.Status()}
			}
			at.pass(ctx, s)
		case <-resizes:
			at.resize(ctx)
		}
	}
}

// raw hands every key on as it is, where the process and we both have a terminal.
func (at *attached) raw(ctx context.Context) (restore func(), err error) {
	keys, typed := terminal.Of(at.keys)
	if !at.tty || !typed {
		return func() {}, nil
	}
	was, err := term.MakeRaw(int(keys.Fd()))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the terminal cannot be made raw")
	}
	at.App.Raw.Store(true)
	at.redraw(ctx)
	return func() {
		_ = term.Restore(int(keys.Fd()), was) // of a terminal that went away: nothing to do
		at.App.Raw.Store(false)
	}, nil
}

// redraw makes a program that draws on the whole screen draw it anew, for who joins it:
// it does so when the terminal has another size.
func (at *attached) redraw(ctx context.Context) {
	if screen, seen := terminal.Of(at.Stdout); seen && at.recent > 0 {
		if cols, rows := terminal.Size(screen); rows > 1 {
			_ = at.process.Resize(ctx, cols, rows-1) // as resize
		}
	}
	at.resize(ctx)
}

// end hangs up on the process, if it is ours to end. It does so more than once: bash loses a SIGHUP that
// comes while it writes its prompt, and waits for a key.
func (at *attached) end() {
	if !at.hangUp {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for n, s := range []string{"SIGHUP", "SIGCONT", "SIGHUP", "SIGHUP"} {
		time.Sleep(time.Duration(min(n, 1)) * 50 * time.Millisecond) // a shell writes its prompt meanwhile
		if err := at.process.Signal(ctx, s, true); err != nil {
			if !fault.Is(err, fault.State) { // it ended
				at.Say(err)
			}
			return
		}
	}
}

func (at *attached) resize(ctx context.Context) {
	if screen, seen := terminal.Of(at.Stdout); seen && at.tty {
		cols, rows := terminal.Size(screen)
		_ = at.process.Resize(ctx, cols, rows) // it may have ended, and the output will say so
	}
}

// pass hands a signal on to the process.
func (at *attached) pass(ctx context.Context, s os.Signal) {
	name := "SIGTERM"
	if s == syscall.SIGINT {
		name = "SIGINT"
	}
	if err := at.process.Signal(ctx, name, true); err != nil && !fault.Is(err, fault.State) {
		at.Say(err)
	}
}

// show writes what comes, and notes the process's end.
func (at *attached) show(ctx context.Context, end **v1.Process) error {
	l := &logs{App: at.App, process: at.process, cursor: at.cursor}
	for out, err := range l.process.Follow(ctx, client.FollowOptions{Cursor: l.cursor, Recent: at.recent}) {
		if err != nil {
			return err
		}
		if out.Exit != nil {
			*end = out.Exit
		}
		at.missed = at.missed || out.Gap != nil
		if err := l.write(out); err != nil {
			return err
		}
	}
	return nil
}

// feed hands our input on. A process that takes none is no failure: it is followed
// all the same.
func (at *attached) feed(ctx context.Context) error {
	keys := terminal.Detacher{Keys: at.leave}
	buf := make([]byte, 32<<10)
	for {
		n, err := at.keys.Read(buf)
		data, left := buf[:n], false
		if at.tty {
			data, left = keys.Filter(data)
		}
		if len(data) > 0 {
			if err := at.enter(ctx, data); err != nil {
				return at.refused(ctx, err)
			}
		}
		switch {
		case left:
			return errDetached
		case errors.Is(err, io.EOF):
			if at.tty {
				return nil
			}
			return at.refused(ctx, at.process.CloseStdin(ctx))
		case err != nil:
			return fault.Wrap(fault.Unavailable, err, "standard input cannot be read")
		}
	}
}

// enter hands a piece of input on. What is typed on a terminal while no server can be
// reached waits for it; of what was under way when a connection broke it is not known
// whether it arrived, and nothing is typed twice.
func (at *attached) enter(ctx context.Context, data []byte) error {
	until := time.Now().Add(client.Patience)
	for {
		_, err := at.process.Write(ctx, data)
		op, dial := errors.AsType[*net.OpError](err)
		switch {
		case !at.tty || !fault.Is(err, fault.Unavailable) || time.Now().After(until):
			return err
		case dial && op.Op == "dial":
		default:
			return nil
		}
		select {
		case <-time.After(typeAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// typeAgain is how long is waited for a server that does not answer.
const typeAgain = 200 * time.Millisecond

func (at *attached) refused(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || fault.Is(err, fault.State) {
		return nil
	}
	return err
}
