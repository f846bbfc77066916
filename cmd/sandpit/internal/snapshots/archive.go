// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"context"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/archive"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/cmd/sandpit/internal/terminal"
)

func newSnapshotExport(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "export [flags] SNAPSHOT [FILE]",
		Short: "Write a snapshot to a file, for this server or another",
		Long: `Write a snapshot to a file, whole or not at all; without FILE, or with "-", to standard output. It is a
gzipped tar with what the disk changed of its image. Variables of the sandbox are left out, since they may
be secrets.`,
		Example: `  sandpit snapshot export web/before web.tar.gz
  sandpit snapshot export web/before | ssh other sandpit snapshot import -`,
		Args: app.Takes(1, 2),
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // a file
		}
		return a.CompleteSnapshots(c, args, word)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		file := "-"
		if len(args) > 1 {
			file = args[1]
		}
		if _, tty := terminal.Of(a.Stdout); tty && file == "-" {
			return exit.Misuse(c, "an archive is nothing for a terminal; name a file, or pipe it into something")
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		return interrupt.Ended(ctx, exportSnapshot(ctx, a, cl, args[0], file))
	}
	return c
}

func exportSnapshot(ctx context.Context, a *app.App, cl *client.Client, snapshot, file string) error {
	r, err := cl.ExportSnapshot(ctx, snapshot)
	if err != nil {
		return err
	}
	defer r.Close()
	return archive.Receive(ctx, a, r, "export "+snapshot, file)
}

func newSnapshotImport(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Make a snapshot from a file that export wrote, and print its id",
		Long: `Make a snapshot from a file that export wrote, and print its id; "-" is standard input. The snapshot
belongs to no sandbox. The server has to have the image that it was made on.`,
		Example: `  id=$(sandpit snapshot import web.tar.gz)
  sandpit create --name again --from-snapshot $id`,
		Args: app.Takes(1, 1),
	}
	name := c.Flags().String("name", "", "the snapshot's name (default: the one in the archive)")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		bar := progress.New(a.Stderr)
		defer bar.Clear()
		from, size, done, err := archive.Open(a, args[0], bar)
		if err != nil {
			return err
		}
		defer done()
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		s, err := cl.ImportSnapshot(ctx, from, client.ImportOptions{Name: *name, Size: size})
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		bar.Clear()
		name := s.ID
		if s.Name != nil {
			name = *s.Name
		}
		return output.One(a.Stdout, *out, s, name, s.ID)
	}
	return c
}
