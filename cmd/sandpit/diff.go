// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/snapshots"
)

func newDiff(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "diff [flags] SANDBOX [FILE...]",
		Short: "Tell what changed of a sandbox's disk between two points in time",
		Long: `Tell what changed of a sandbox's disk between two points in time: by default all that is not as in its
image. Each line is one path: created, modified or deleted, and its size.

A point is the name of one of its snapshots, also as SANDBOX/NAME, the id of any, base (the image) or now. Volumes are no part
of the disk.

With --text it prints what differs in the texts of the files that changed, or of those that are named, as diff -u does: without
starting the sandbox, and without rolling back. Files of more than 2 MiB or 100000 lines are not compared.`,
		Example: `  sandpit diff web
  sandpit diff web --from before
  sandpit diff web --from monday --to tuesday -o json
  sandpit diff web --text --from before src/app.py`,
		Args:              app.Takes(1, -1),
		ValidArgsFunction: a.CompleteFirst,
	}
	f := c.Flags()
	from := f.String("from", "", "the earlier point (default base)")
	to := f.String("to", "", "the later point (default now)")
	limit := f.IntP("lines", "n", 0, "most changes, at most 10000 (default 1000)")
	text := f.Bool("text", false, "print what differs in the texts of files, by lines")
	_ = c.RegisterFlagCompletionFunc("from", a.CompletePoint("base"))
	_ = c.RegisterFlagCompletionFunc("to", a.CompletePoint("now"))
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if !*text && len(args) > 1 {
			return exit.Misuse(c, "files are named for --text; without it all that changed is told")
		}
		if *text && out.IsData() {
			return exit.Misuse(c, "--text prints text; for JSON there is GET /v1/sandboxes/{id}/diff/text")
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		if *text {
			return snapshots.DiffTexts(c.Context(), a, cl, args[0], client.DiffOptions{From: *from, To: *to, Limit: *limit}, args[1:])
		}
		d, err := cl.Diff(c.Context(), args[0], client.DiffOptions{From: *from, To: *to, Limit: *limit})
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, d)
		}
		w := bufio.NewWriter(a.Stdout)
		for i := range d.Items {
			fmt.Fprintln(w, diffLine(&d.Items[i]))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if d.Truncated {
			a.Warn("these are %d of at least %s; see --lines", len(d.Items), output.Plural(d.Total, "change"))
		}
		return nil
	}
	return c
}

// diffLine is a change for people.
func diffLine(ch *v1.DiffChange) string {
	line := fmt.Sprintf("%-8s  %s", ch.Action, output.Printable(ch.Path))
	if ch.Action != "deleted" {
		line += "  (" + output.Bytes(ch.SizeBytes) + ")"
	}
	return line
}
