// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

func newWatch(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "watch [flags] SANDBOX [PATH]",
		Short: "Tell what changes in a directory of a sandbox, as it happens",
		Long: `Tell what changes in a directory of a sandbox, as it happens, until Ctrl-C.

PATH is absolute or relative to /workspace, which it is by default. Each line is one change: created,
modified, deleted, renamed, or attributes (mode, owner, times). A line "dropped" says that changes came
too fast to tell all: list the directory to see what is there.

It ends with 1 when the directory is removed or the sandbox stops. A sandbox that is watched is not idle.`,
		Example: `  sandpit watch web
  sandpit watch -r web src
  sandpit watch -o json -r web / | jq .path`,
		Args:              app.Takes(1, 2),
		ValidArgsFunction: a.CompletePath,
	}
	recursive := c.Flags().BoolP("recursive", "r", false, "with all that is below")
	user := c.Flags().StringP("user", "u", "", "as an account of the sandbox, a name or a number (default its own user)")
	out := output.FormatsFlag(c, output.AsText, output.AsText, output.AsJSON)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		path := ""
		if len(args) > 1 {
			path = args[1]
		}
		w, err := cl.Watch(c.Context(), args[0], path, client.WatchOptions{User: *user, Recursive: *recursive})
		if err != nil {
			return err
		}
		defer w.Close()
		fmt.Fprintln(a.Stderr, "watching; Ctrl-C ends it")
		lines := json.NewEncoder(a.Stdout) // one a line, unlike other JSON of ours: it never ends
		lines.SetEscapeHTML(false)
		for {
			e, err := w.Next()
			switch {
			case errors.Is(err, io.EOF):
				return fault.New(fault.State, "the watch ended: %s", w.End().Detail)
			case err != nil:
				return err
			}
			if out.IsData() {
				err = lines.Encode(e)
			} else {
				_, err = fmt.Fprintln(a.Stdout, watchLine(e))
			}
			if err != nil {
				return err
			}
		}
	}
	return c
}

// watchLine is an event for people.
func watchLine(e *v1.WatchEvent) string {
	slash := ""
	if e.IsDir {
		slash = "/"
	}
	switch {
	case e.Dropped > 0:
		return fmt.Sprintf("dropped     %s at least", output.Plural(e.Dropped, "event"))
	case e.Exchange:
		return fmt.Sprintf("exchanged   %s and %s", output.Printable(e.From)+slash, output.Printable(e.Path)+slash)
	case e.From != "":
		return fmt.Sprintf("%-11s %s -> %s", e.Type, output.Printable(e.From)+slash, output.Printable(e.Path)+slash)
	}
	return fmt.Sprintf("%-11s %s", e.Type, output.Printable(e.Path)+slash)
}
