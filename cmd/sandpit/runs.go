// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newRuns(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "runs",
		Short: "Start, follow and cancel batches of commands, and get their artifacts",
		Long: `Start, follow and cancel runs: batches of commands that go on whoever goes away, also after a restart of the
server. Files under /artifacts are copied out after each run and kept for some days.`,
		Args: cobra.ArbitraryArgs,
		RunE: app.Group,
	}
	c.AddCommand(newRunsStart(a), newRunsLs(a), newRunsShow(a), newRunsFollow(a), newRunsCancel(a), newRunsArtifacts(a))
	return c
}

func newRunsStart(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "start [flags] SANDBOX COMMAND...",
		Short: "Start a run of shell commands and print its id; a sandbox by a new key is made",
		Example: `  sandpit runs start box 'pip install -r requirements.txt' 'pytest > /artifacts/report.txt'
  sandpit runs start --follow box 'make test'`,
		Args:              app.Takes(2, -1),
		ValidArgsFunction: a.CompleteAll,
	}
	var r v1.StartRun
	var root bool
	var ttl flags.Period
	f := c.Flags()
	f.BoolVarP(&r.ContinueOnError, "continue-on-error", "k", false, "run the rest after a failure; the run fails all the same")
	f.BoolVar(&r.LockSandbox, "lock", false, "wait until earlier runs with --lock of the same sandbox have ended")
	f.BoolVar(&root, "root", false, "as the sandbox's root")
	f.Var(&ttl, "ttl", "delete the sandbox when unused for so long")
	follow := f.BoolP("follow", "f", false, "show the output until the run ends, and exit as it did")
	c.RunE = func(c *cobra.Command, args []string) error {
		for i := range args[1:] {
			r.Commands = append(r.Commands, v1.RunCommandSpec{Shell: &args[i+1]})
		}
		if root {
			user := "root"
			r.AsUser = &user
		}
		r.TTLSeconds = ttl.Seconds()
		cl, err := a.Client()
		if err != nil {
			return err
		}
		run, err := cl.StartRun(c.Context(), args[0], r)
		if err != nil {
			return err
		}
		if *follow {
			return followRun(c.Context(), a, cl, run.RunID)
		}
		_, err = fmt.Fprintln(a.Stdout, run.RunID)
		return err
	}
	return c
}

func newRunsLs(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use: "ls [flags] [SANDBOX]", Aliases: []string{"list"}, Short: "List runs, newest first", Args: app.Takes(0, 1), ValidArgsFunction: a.CompleteAll,
	}
	most := c.Flags().IntP("limit", "n", 50, "at most so many")
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		var q client.RunQuery
		if len(args) == 1 {
			q.Sandbox = args[0]
		}
		found := []v1.Run{}
		for r, err := range cl.Runs(c.Context(), q) {
			if err != nil {
				return err
			}
			if len(found) == *most {
				break
			}
			found = append(found, *r)
		}
		return output.List(a.Stdout, how, found, func(r v1.Run) string { return r.RunID }, output.Columns[v1.Run]{
			Head: []string{"ID", "SANDBOX", "STATE", "ARTIFACTS", "CREATED"},
			Row: func(r v1.Run, now time.Time) []string {
				return []string{r.RunID, r.Identifier, r.State, strconv.Itoa(len(r.Artifacts)), output.Ago(now, &r.CreatedAt)}
			},
		})
	}
	return c
}

func newRunsShow(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use: "show [flags] RUN", Short: "Show a run with the output of its commands, as JSON or YAML", Args: app.Takes(1, 1), ValidArgsFunction: a.CompleteRuns,
	}
	out := output.FormatsFlag(c, output.AsJSON, output.AsJSON, output.AsYAML)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		r, err := cl.Run(c.Context(), args[0])
		if err != nil {
			return err
		}
		return output.Data(a.Stdout, *out, r)
	}
	return c
}

func newRunsFollow(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use: "follow RUN", Short: "Show the output of a run until it ends, and exit as it did", Args: app.Takes(1, 1), ValidArgsFunction: a.CompleteRuns,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return followRun(c.Context(), a, cl, args[0])
	}
	return c
}

func newRunsCancel(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "cancel RUN...", Short: "End runs: what runs is killed, and nothing more begun", Args: app.Takes(1, -1), ValidArgsFunction: a.CompleteRuns}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		for _, id := range args {
			r, err := cl.CancelRun(c.Context(), id)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout, r.RunID, r.State)
		}
		return nil
	}
	return c
}

func newRunsArtifacts(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "artifacts [flags] SANDBOX [RUN [PATH]]",
		Short: "List the artifacts of a run, by default the latest that has any, or write one to standard output",
		Example: `  sandpit runs artifacts box
  sandpit runs artifacts box latest report.pdf > report.pdf
  sandpit runs artifacts --link box latest report.pdf`,
		Args: app.Takes(1, 3), ValidArgsFunction: a.CompleteAll,
	}
	link := c.Flags().Bool("link", false, "print a link that is good for whoever has it, for an hour")
	how := output.ListFlags(c, "paths only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		run := "latest"
		if len(args) > 1 {
			run = args[1]
		}
		if len(args) == 3 && !*link {
			body, err := cl.Artifact(c.Context(), args[0], run, args[2])
			if err != nil {
				return err
			}
			defer body.Close()
			_, err = io.Copy(a.Stdout, body)
			return err
		}
		list, err := cl.Artifacts(c.Context(), args[0], run)
		if err != nil {
			return err
		}
		switch {
		case len(args) == 3:
			l, err := cl.ArtifactLink(c.Context(), list.RunID, args[2], 0)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Stdout, l.URL)
			return err
		case *link:
			return exit.Misuse(c, "a link is to one artifact: give RUN and PATH")
		}
		return output.List(a.Stdout, how, list.Artifacts, func(f v1.Artifact) string { return f.Path }, output.Columns[v1.Artifact]{
			Head:     []string{"PATH", "SIZE"},
			Row:      func(f v1.Artifact, _ time.Time) []string { return []string{f.Path, output.Bytes(f.Size)} },
			WideHead: []string{"SHA256"},
			WideRow:  func(f v1.Artifact, _ time.Time) []string { return []string{f.SHA256} },
			Whole:    list,
		})
	}
	return c
}

// followRun shows a run's output until it ends.
func followRun(ctx context.Context, a *app.App, cl *client.Client, id string) error {
	for ev, err := range cl.FollowRun(ctx, id, 0) {
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		switch ev.Name {
		case v1.RunEventCommandStarted:
			var d v1.CommandStarted
			if err := json.Unmarshal(ev.Data, &d); err != nil {
				return err
			}
			line := d.Shell
			if line == "" {
				line = fmt.Sprint(d.Argv)
			}
			a.Warn("[%d] %s", d.Index, output.Printable(line))
		case v1.RunEventCommandStdout, v1.RunEventCommandStderr:
			var d v1.CommandOutput
			if err := json.Unmarshal(ev.Data, &d); err != nil {
				return err
			}
			to, text := a.Stdout, []byte(d.Chunk)
			if ev.Name == v1.RunEventCommandStderr {
				to = a.Stderr
			}
			if d.Base64 != nil {
				text = d.Base64
			}
			if _, err := to.Write(text); err != nil {
				return err
			}
		case v1.RunEventFailed:
			var d v1.RunEnded
			if err := json.Unmarshal(ev.Data, &d); err != nil {
				return err
			}
			a.Warn("the run %s: %s", d.State, output.Printable(d.Error))
			return &exit.Error{Status: 1}
		}
	}
	return nil
}
