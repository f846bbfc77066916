// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet has the commands about sandboxes of all projects.
package fleet

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// App is what the commands need of the program.
type App struct {
	Client   func() (*client.Client, error)
	Out, Err io.Writer
	Takes    func(least, most int) cobra.PositionalArgs
	Group    func(*cobra.Command, []string) error
}

// New returns the group of commands.
func New(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "admin",
		Short: "List, stop and delete sandboxes of all projects",
		Long:  "List, stop and delete sandboxes of all projects. It is for the server's own administrator's token.",
		Args:  cobra.ArbitraryArgs,
		RunE:  a.Group,
	}
	c.AddCommand(a.ls(),
		a.bulk("stop", "Stop sandboxes of all projects", (*client.Client).BulkStop),
		a.bulk("rm", "Delete sandboxes of all projects, with all that is in them", (*client.Client).BulkDestroy))
	return c
}

// filter is what says which sandboxes are meant.
type filter struct {
	project, image, search string
	status, exclude        []string
	labels                 flags.Pairs
}

func (f *filter) flags(c *cobra.Command) {
	f.labels = flags.Pairs{}
	s := c.Flags()
	s.StringVar(&f.project, "project", "", "only those of this project")
	s.StringSliceVar(&f.status, "status", nil, "only those in this state; may be given again")
	s.StringSliceVar(&f.exclude, "exclude-status", nil, "none in this state; may be given again")
	s.StringVar(&f.image, "image", "", "only those on images with this in their name")
	s.StringVar(&f.search, "search", "", "only those with this in id, name or image")
	s.Var(f.labels, "label", "only those with this label; may be given again")
}

func (f *filter) empty() bool {
	return f.project == "" && f.image == "" && f.search == "" && len(f.status)+len(f.exclude)+len(f.labels) == 0
}

func (a App) ls() *cobra.Command {
	c := &cobra.Command{Use: "ls [flags]", Aliases: []string{"list"}, Short: "List sandboxes of all projects, newest first", Args: a.Takes(0, 0)}
	var f filter
	f.flags(c)
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		found, err := output.Collect(cl.Fleet(c.Context(), client.FleetQuery{
			Project: f.project, Status: f.status, Exclude: f.exclude, Image: f.image, Search: f.search, Metadata: f.labels.Value(), Limit: 500,
		}))
		if err != nil {
			return err
		}
		return output.List(a.Out, how, found, func(s *v1.Sandbox) string { return s.ID }, output.Columns[*v1.Sandbox]{
			Head: []string{"PROJECT", "NAME", "ID", "STATUS", "IMAGE", "CREATED", "ACTIVE"},
			Row: func(s *v1.Sandbox, now time.Time) []string {
				return []string{s.Project, output.Text(s.Key), s.ID, s.Status, s.Image, output.Ago(now, &s.CreatedAt), output.Ago(now, s.LastActivityAt)}
			},
			Called: func(s *v1.Sandbox) string { return s.ID },
		})
	}
	return c
}

func (a App) bulk(use, short string, do func(*client.Client, context.Context, v1.BulkSandboxes) (*v1.BulkResult, error)) *cobra.Command {
	c := &cobra.Command{
		Use: use + " [flags] [ID...]", Short: short,
		Long: short + ": those whose ids are given, or those that the flags say, or with --all every one.\nA failure does not spare the others.",
		Example: fmt.Sprintf(`  sandpit admin %[1]s --project team-a --status running --dry-run
  sandpit admin %[1]s f3k9q2m7x1b8c4d6`, use),
		Args: a.Takes(0, -1),
	}
	var f filter
	f.flags(c)
	all := c.Flags().Bool("all", false, "every one that the other flags leave")
	dry := c.Flags().Bool("dry-run", false, "do nothing, and say what would be done")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, ids []string) error {
		switch {
		case len(ids) > 0 && (*all || !f.empty()):
			return exit.Misuse(c, "ids and flags that select cannot both be given")
		case len(ids) == 0 && !*all && f.empty():
			return exit.Misuse(c, "name sandboxes by their ids, say which by flags, or give --all")
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		r := v1.BulkSandboxes{SandboxIDs: ids, All: *all, Status: f.status, ExcludeStatus: f.exclude, Metadata: f.labels.Value(), DryRun: *dry}
		for _, o := range []struct {
			value string
			to    **string
		}{{f.project, &r.Project}, {f.image, &r.Image}, {f.search, &r.Search}} {
			if o.value != "" {
				*o.to = &o.value
			}
		}
		got, err := do(cl, c.Context(), r)
		if err != nil {
			return err
		}
		if out.IsData() {
			err = output.Data(a.Out, *out, got)
		} else {
			err = a.print(got)
		}
		if err == nil && len(got.Errors) > 0 {
			return fmt.Errorf("%s of %d failed", output.Plural(len(got.Errors), "sandbox"), len(got.Errors)+len(got.Stopped)+len(got.Destroyed))
		}
		return err
	}
	return c
}

func (a App) print(r *v1.BulkResult) error {
	would := ""
	if r.DryRun {
		would = "would be "
	}
	for _, part := range []struct {
		what string
		ids  []string
	}{{would + "stopped", r.Stopped}, {would + "deleted", r.Destroyed}, {"skipped", r.Skipped}} {
		for _, id := range part.ids {
			if _, err := fmt.Fprintf(a.Out, "%s\t%s\n", id, part.what); err != nil {
				return err
			}
		}
	}
	for _, e := range r.Errors {
		fmt.Fprintf(a.Err, "%s: %s\n", e.SandboxID, output.Printable(e.Error))
	}
	return nil
}
