// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

func newStart(a *app) *cobra.Command {
	return a.verb(&cobra.Command{Use: "start SANDBOX...", Short: "Start stopped sandboxes"}, (*client.Client).Start)
}

// verb makes c a command that does something to each of the sandboxes that are named, and
// prints them.
func (a *app) verb(c *cobra.Command, do func(cl *client.Client, ctx context.Context, ref string) (*v1.Sandbox, error)) *cobra.Command {
	c.Args, c.ValidArgsFunction = takes(1, -1), a.completeAll
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.each(c.Context(), refs, *out, func(ctx context.Context, ref string) (*v1.Sandbox, error) { return do(cl, ctx, ref) })
	}
	return c
}

// each does something to each sandbox, and prints them. One that fails does not
// spare the others; the last failure is the caller's to report.
func (a *app) each(ctx context.Context, refs []string, f output.Format, do func(context.Context, string) (*v1.Sandbox, error)) error {
	var last error
	done := []*v1.Sandbox{}
	for _, ref := range refs {
		s, err := do(ctx, ref)
		if err != nil {
			if last != nil {
				a.say(last)
			}
			last = err
			continue
		}
		done = append(done, s)
		if !f.IsData() {
			fmt.Fprintln(a.stdout, output.Printable(s.Ref()))
		}
	}
	if f.IsData() {
		if err := output.Data(a.stdout, f, done); err != nil {
			return err
		}
	}
	return last
}

// one does something to a sandbox, and prints it.
func (a *app) one(ctx context.Context, ref string, f output.Format, do func(context.Context, string) (*v1.Sandbox, error)) error {
	s, err := do(ctx, ref)
	if err != nil {
		return err
	}
	if f.IsData() {
		return output.Data(a.stdout, f, s)
	}
	_, err = fmt.Fprintln(a.stdout, output.Printable(s.Ref()))
	return err
}

// eachName does something to each thing that is named, and prints the names. One
// that fails does not spare the others; the last failure is the caller's to report.
func (a *app) eachName(names []string, do func(string) error) error {
	var last error
	for _, name := range names {
		if err := do(name); err != nil {
			if last != nil {
				a.say(last)
			}
			last = err
			continue
		}
		fmt.Fprintln(a.stdout, output.Printable(name))
	}
	return last
}

func newStop(a *app) *cobra.Command {
	return a.verb(&cobra.Command{Use: "stop SANDBOX...", Short: "Stop sandboxes: their processes end, their files stay"}, (*client.Client).Stop)
}

func newArchive(a *app) *cobra.Command {
	return a.verb(&cobra.Command{
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

func newPause(a *app) *cobra.Command {
	return a.verb(&cobra.Command{
		Use:   "pause SANDBOX...",
		Short: "Freeze sandboxes with all that runs in them",
		Long: `Freeze sandboxes: their processes stand still, keep their memory, and go on where they were when they are
resumed. Timeouts of commands stand still too, and nothing is counted as running time.`,
	}, (*client.Client).Pause)
}

func newResume(a *app) *cobra.Command {
	return a.verb(&cobra.Command{Use: "resume SANDBOX...", Short: "Let paused sandboxes go on"}, (*client.Client).Resume)
}

func newRestart(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "restart SANDBOX...",
		Short: "Stop sandboxes and start them: their processes end, their files stay",
		Long: `Stop sandboxes and start them: their processes end, their files stay. One that is stopped or paused runs after.

For an empty disk, use sandpit reset.`,
	}
	a.verb(c, (*client.Client).Restart)
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

func newReset(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "reset [flags] SANDBOX...",
		Short: "Give sandboxes an empty disk, as if they were new",
		Long: `Give sandboxes an empty disk, as if they were new: their processes end and all files in them are lost, but
those on volumes. Id, key, limits, labels and snapshots stay.

To begin their processes anew and keep the files, use sandpit restart.`,
		Example: `  sandpit snapshot create web
  sandpit reset -f web`,
		Args:              takes(1, -1),
		ValidArgsFunction: a.completeAll,
	}
	force := c.Flags().BoolP("force", "f", false, "yes, all files are to be lost")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		if !*force {
			return fault.New(fault.State, "a reset gives %s an empty disk: the files in it are lost", refs[0]).
				WithRemedy("say -f if that is meant; keep them first with sandpit snapshot create %[1]s; or begin its processes anew and keep them all with sandpit restart %[1]s", refs[0])
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.each(c.Context(), refs, *out, cl.Reset)
	}
	return c
}
