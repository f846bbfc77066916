// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
)

func newLogs(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "logs [flags] SANDBOX [PROCESS]",
		Short: "Show what a process wrote, or all of a sandbox",
		Long: `Show what a process of a sandbox wrote, its standard error on ours; with -f also what it goes on to write,
until it ends. A connection that breaks and a server that is restarted are got over without losing anything.
A PROCESS is an id, the beginning of one, name:NAME, pid:N (its number inside), or last.

Without a PROCESS it is what all wrote that are remembered, the oldest first, each line with the beginning of its process's
id; with -f then what those that run and those that are started from now on write, as it comes, until it is interrupted.`,
		Example: `  sandpit logs -f web $(sandpit exec --detach web -- npm run dev)
  sandpit logs web last
  sandpit logs -f -n 5 web
  sandpit logs -n 20 --stream stderr web p1q2r3s4t5u6v7w8`,
		Args: app.Takes(1, 2),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeProcess(a, c, args, typed)
		},
	}
	follow := c.Flags().BoolP("follow", "f", false, "go on until the process ends")
	lines := c.Flags().IntP("tail", "n", -1, "only so many lines of what there is already, of each process; -1: all")
	stream := c.Flags().String("stream", "", "only stdout or stderr")
	_ = c.RegisterFlagCompletionFunc("stream", cobra.FixedCompletions([]string{v1.StreamStdout, v1.StreamStderr}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		switch *stream {
		case "", v1.StreamStdout, v1.StreamStderr:
		default:
			return exit.Misuse(c, "--stream is %q, and neither stdout nor stderr", *stream)
		}
		if *lines < -1 {
			return exit.Misuse(c, "--tail is %d, and less than -1", *lines)
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		if len(args) == 1 {
			all := &allLogs{App: a, cl: cl, ref: args[0], only: *stream, lines: *lines, follow: *follow}
			return interrupt.Ended(ctx, all.show(ctx))
		}
		p, err := openProcess(ctx, cl, args[0], args[1])
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		l := &logs{App: a, process: p, only: *stream}
		return interrupt.Ended(ctx, l.from(ctx, *lines, *follow))
	}
	return c
}

// logs is output that is being shown.
type logs struct {
	*app.App
	process *client.Process
	only    string // the stream; empty: both
	cursor  int64
	ended   bool

	out, err io.Writer // nil: those of the app
}

// from shows the last lines of what there is already, or with -1 all, and then what comes if it
// is to follow.
func (l *logs) from(ctx context.Context, lines int, follow bool) error {
	if lines >= 0 {
		if err := l.tail(ctx, lines); err != nil || !follow || l.ended {
			return err
		}
	}
	return l.show(ctx, !follow)
}

// show writes what comes after the cursor.
func (l *logs) show(ctx context.Context, once bool) error {
	for out, err := range l.process.Follow(ctx, client.FollowOptions{Cursor: l.cursor, Once: once}) {
		if err != nil {
			return err
		}
		if err := l.write(out); err != nil {
			return err
		}
	}
	return nil
}

// missing says how much a gap is.
func missing(g *v1.OutputGap) string {
	switch {
	case g.Bytes > 0:
		return fmt.Sprintf("%d bytes of %s", g.Bytes, g.Stream)
	case g.Frames > 0:
		return fmt.Sprintf("%d pieces", g.Frames)
	}
	return "some of " + g.Stream
}

func (l *logs) wants(out client.Output) bool {
	return l.only == "" || (l.only == v1.StreamStderr) == out.Stderr
}

func (l *logs) write(out client.Output) error {
	switch {
	case out.Gap != nil:
		l.Warn("output is missing here (%s): %s", missing(out.Gap), out.Gap.Why)
	case out.Exit != nil || !l.wants(out):
	default:
		w := cmp.Or(l.out, l.Stdout)
		if out.Stderr {
			w = cmp.Or(l.err, l.Stderr)
		}
		_, err := w.Write(out.Data)
		if interrupt.PipeBroken(err) { // nobody reads us, and the signal is on its way
			return &exit.Error{Status: interrupt.Error{Signal: syscall.SIGPIPE}.Status()}
		}
		return err
	}
	return nil
}

// tail shows the last lines of what there is, and holds no more than those.
func (l *logs) tail(ctx context.Context, lines int) error {
	var kept []client.Output
	ends := 0 // of lines, in kept
	for out, err := range l.process.Follow(ctx, client.FollowOptions{Once: true}) {
		if err != nil {
			return err
		}
		l.ended = out.Exit != nil
		if out.Gap != nil || out.Exit != nil {
			continue
		}
		l.cursor = out.Seq
		if !l.wants(out) {
			continue
		}
		kept = append(kept, out)
		ends += bytes.Count(out.Data, []byte("\n"))
		for len(kept) > 1 {
			first := bytes.Count(kept[0].Data, []byte("\n"))
			if ends-first <= lines {
				break
			}
			ends -= first
			kept = kept[1:]
		}
	}
	if len(kept) > 0 && !bytes.HasSuffix(kept[len(kept)-1].Data, []byte("\n")) {
		ends++ // a last line without an end is one
	}
	for _, out := range kept {
		for ends > lines {
			i := bytes.IndexByte(out.Data, '\n')
			if i < 0 {
				out.Data = nil
				break
			}
			out.Data = out.Data[i+1:]
			ends--
		}
		if len(out.Data) == 0 {
			continue
		}
		if err := l.write(out); err != nil {
			return err
		}
	}
	return nil
}
