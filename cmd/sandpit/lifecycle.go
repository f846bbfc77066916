// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

func newStart(a *app.App) *cobra.Command {
	return verb(a, &cobra.Command{Use: "start SANDBOX...", Short: "Start stopped sandboxes"}, (*client.Client).Start)
}

// verb makes c a command that does something to each of the sandboxes that are named, and
// prints them.
func verb(a *app.App, c *cobra.Command, do func(cl *client.Client, ctx context.Context, ref string) (*v1.Sandbox, error)) *cobra.Command {
	c.Args, c.ValidArgsFunction = app.Takes(1, -1), a.CompleteAll
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.Each(c.Context(), refs, *out, func(ctx context.Context, ref string) (*v1.Sandbox, error) { return do(cl, ctx, ref) })
	}
	return c
}

func newStop(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "stop [flags] SANDBOX...",
		Short: "Stop sandboxes: their processes end, their files stay",
		Example: `  sandpit stop web
  sandpit stop web --grace 0s
  sandpit stop database --grace 2m`,
	}
	grace := c.Flags().Duration("grace", 0, "how long their processes may take to end by themselves (30s), at most 10m; 0s: they are killed at once; left out: the server's own")
	return verb(a, c, func(cl *client.Client, ctx context.Context, ref string) (*v1.Sandbox, error) {
		if !c.Flags().Changed("grace") {
			return cl.Stop(ctx, ref)
		}
		return cl.StopWithin(ctx, ref, *grace)
	})
}

func newArchive(a *app.App) *cobra.Command {
	return verb(a, &cobra.Command{
		Use:   "archive SANDBOX...",
		Short: "Pack the disks of stopped sandboxes, and keep them elsewhere",
		Long: `Pack the disks of stopped sandboxes, and keep them where the server keeps archives: a directory or a bucket. They
take no room where sandboxes run, and sandpit start brings them back, as does what else starts a stopped sandbox.

An archived sandbox is deleted by its retention as a stopped one is; sandpit update --retention 0 keeps it for ever.`,
		Example: `  sandpit stop web && sandpit archive web
  sandpit ls -a --filter status=archived
  sandpit update web --archive-after 1d`,
	}, (*client.Client).Archive)
}

func newPause(a *app.App) *cobra.Command {
	return verb(a, &cobra.Command{
		Use:   "pause SANDBOX...",
		Short: "Freeze sandboxes with all that runs in them",
		Long: `Freeze sandboxes: their processes stand still, keep their memory, and go on where they were when they are
resumed. Timeouts of commands stand still too, and nothing is counted as running time.`,
	}, (*client.Client).Pause)
}

func newResume(a *app.App) *cobra.Command {
	return verb(a, &cobra.Command{Use: "resume SANDBOX...", Short: "Let paused sandboxes go on"}, (*client.Client).Resume)
}

func newRestart(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "restart SANDBOX...",
		Short: "Stop sandboxes and start them: their processes end, their files stay",
		Long: `Stop sandboxes and start them: their processes end, their files stay. One that is stopped or paused runs after.

For an empty disk, use sandpit reset.`,
	}
	verb(a, c, (*client.Client).Restart)
	emptied := c.Flags().BoolP("force", "f", false, "")
	_ = c.Flags().MarkHidden("force")
	do := c.RunE
	c.RunE = func(c *cobra.Command, refs []string) error {
		if *emptied { // as it was written while a restart emptied the disk
			return exit.Misuse(c, "a restart keeps the files, and has nothing to force; for an empty disk: sandpit reset -f %s", strings.Join(refs, " "))
		}
		return do(c, refs)
	}
	return c
}

func newReset(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "reset [flags] SANDBOX...",
		Short: "Give sandboxes an empty disk, as if they were new",
		Long: `Give sandboxes an empty disk, as if they were new: their processes end and all files in them are lost, but
those on volumes. Id, key, limits, labels and snapshots stay.

To begin their processes anew and keep the files, use sandpit restart.`,
		Example: `  sandpit snapshot create web
  sandpit reset -f web`,
		Args:              app.Takes(1, -1),
		ValidArgsFunction: a.CompleteAll,
	}
	force := c.Flags().BoolP("force", "f", false, "yes, all files are to be lost")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		if !*force {
			return fault.New(fault.State, "a reset gives %s an empty disk: the files in it are lost", refs[0]).
				WithRemedy("say -f if that is meant; keep them first with sandpit snapshot create %[1]s; or begin its processes anew and keep them all with sandpit restart %[1]s", refs[0])
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.Each(c.Context(), refs, *out, cl.Reset)
	}
	return c
}
