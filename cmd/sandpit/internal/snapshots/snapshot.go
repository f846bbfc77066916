// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// New returns the group of commands.
func New(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "snapshot",
		Aliases: []string{"snap"},
		Short:   "Keep, list, copy and delete sandboxes' disks as they were",
		Long: `Keep, list, copy and delete sandboxes' disks as they were.

A snapshot is named by its id, or as SANDBOX/NAME. One with a name stays when its sandbox is deleted; its
SANDBOX is then the id of what is gone.`,
		Args: cobra.ArbitraryArgs,
		RunE: app.Group,
	}
	c.AddCommand(newSnapshotCreate(a), NewLs(a), newSnapshotArchive(a), newSnapshotRm(a), newSnapshotExport(a), newSnapshotImport(a), newSnapshotFiles(a), newSnapshotCat(a))
	return c
}

func newSnapshotCreate(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "create [flags] SANDBOX",
		Short: "Keep a sandbox's disk as it is, and print the snapshot's id",
		Long: `Keep a sandbox's disk as it is, and print the snapshot's id. What runs in the sandbox stands still for an
instant and goes on. Processes and volumes are no part of a snapshot.`,
		Example: `  sandpit snapshot create web
  sandpit snapshot create web --name nightly --replace`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteFirst,
	}
	name := c.Flags().String("name", "", "the snapshot's name, unique among the sandbox's")
	replace := c.Flags().Bool("replace", false, "delete the snapshot that has the name")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if *replace && *name == "" {
			return exit.Misuse(c, "--replace is given without --name; there is nothing to replace")
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		s, err := cl.Snapshot(c.Context(), args[0], v1.CreateSnapshot{Name: flags.Given(c.Flags(), "name", *name), Replace: *replace})
		if err != nil {
			return err
		}
		name := s.ID
		if s.Name != nil {
			name = *s.Name
		}
		return output.One(a.Stdout, *out, s, name, s.ID)
	}
	return c
}

// NewLs returns the command that lists snapshots.
func NewLs(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:               "ls [flags] [SANDBOX]",
		Aliases:           []string{"list"},
		Short:             "List snapshots",
		Long:              "List snapshots, the newest first: all, or those of a sandbox, which may be gone if it is named by its id.",
		Args:              app.Takes(0, 1),
		ValidArgsFunction: a.CompleteFirst,
	}
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		q := client.SnapshotQuery{Limit: app.ListPage, Sandbox: strings.Join(args, "")}
		found, err := output.Collect(cl.Snapshots(c.Context(), q))
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, found, func(s *v1.Snapshot) string { return s.ID }, output.Columns[*v1.Snapshot]{
			Head: []string{"NAME", "ID", "SANDBOX", "SIZE", "CREATED", "PARENT", "ABOUT"},
			Row: func(s *v1.Snapshot, now time.Time) []string {
				size := ""
				if s.SizeBytes != nil {
					size = output.Bytes(*s.SizeBytes)
				}
				about := s.Detail
				if s.Status == "archived" {
					about = strings.TrimSpace("archived " + about)
				}
				if s.Auto {
					about = strings.TrimSpace("checkpoint " + about)
				}
				return []string{output.Text(s.Name), s.ID, output.Text(s.Sandbox), size, output.Ago(now, &s.CreatedAt), output.Text(s.Parent), about}
			},
		})
	}
	return c
}

func newSnapshotRm(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:               "rm SNAPSHOT...",
		Short:             "Delete snapshots; what was made from them stays",
		Args:              app.Takes(1, -1),
		ValidArgsFunction: a.CompleteSnapshots,
	}
	c.RunE = func(c *cobra.Command, names []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.EachName(names, func(name string) error { return cl.DeleteSnapshot(c.Context(), name) })
	}
	return c
}

func newSnapshotArchive(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "archive SNAPSHOT...",
		Short: "Put snapshots away, where they take no room of the server's disks",
		Long: `Put snapshots away that are not needed for a while: each is packed, and kept where the server keeps archives. It comes back by
itself when it is used, which takes as long as to unpack it.`,
		Args:              app.Takes(1, -1),
		ValidArgsFunction: a.CompleteSnapshots,
	}
	c.RunE = func(c *cobra.Command, names []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.EachName(names, func(name string) error {
			_, err := cl.ArchiveSnapshot(c.Context(), name)
			return err
		})
	}
	return c
}

// NewRollback returns the command that gives a sandbox the disk of a snapshot.
func NewRollback(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "rollback [flags] SANDBOX --to SNAPSHOT",
		Short: "Give a sandbox the disk of a snapshot",
		Long: `Give a sandbox the disk of a snapshot: its processes end, and what changed since is lost, but on volumes.
Id, key and snapshots stay. One that ran runs afterwards; one that was stopped stays stopped.

SNAPSHOT is the name of one of its snapshots, also as SANDBOX/NAME, the id of any, or base: the image, on which nothing was
changed.`,
		Example: `  sandpit snapshot create web --name before
  sandpit exec web -- pip install -r requirements.txt
  sandpit rollback web --to before`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteFirst,
	}
	to := c.Flags().String("to", "", "the snapshot: its name, its id, or SANDBOX/NAME; or base")
	_ = c.RegisterFlagCompletionFunc("to", a.CompletePoint("base"))
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if *to == "" {
			return exit.Misuse(c, "--to is missing: name a snapshot (sandpit snapshot ls %s lists them), or base", args[0])
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.One(c.Context(), args[0], *out, func(ctx context.Context, ref string) (*v1.Sandbox, error) {
			return cl.Rollback(ctx, ref, *to)
		})
	}
	return c
}
