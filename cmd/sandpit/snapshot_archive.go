// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/cmd/sandpit/internal/terminal"
	"sandpit.dev/fault"
)

func newSnapshotExport(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "export [flags] SNAPSHOT [FILE]",
		Short: "Write a snapshot to a file, for this server or another",
		Long: `Write a snapshot to a file, whole or not at all; without FILE, or with "-", to standard output. It is a
gzipped tar with what the disk changed of its image. Variables of the sandbox are left out, since they may
be secrets.`,
		Example: `  sandpit snapshot export web/before web.tar.gz
  sandpit snapshot export web/before | ssh other sandpit snapshot import -`,
		Args: takes(1, 2),
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // a file
		}
		return a.completeSnapshots(c, args, word)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		file := "-"
		if len(args) > 1 {
			file = args[1]
		}
		if _, tty := terminal.Of(a.stdout); tty && file == "-" {
			return exit.Misuse(c, "an archive is nothing for a terminal; name a file, or pipe it into something")
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		return interrupt.Ended(ctx, a.export(ctx, cl, args[0], file))
	}
	return c
}

func (a *app) export(ctx context.Context, cl *client.Client, snapshot, file string) error {
	r, err := cl.ExportSnapshot(ctx, snapshot)
	if err != nil {
		return err
	}
	defer r.Close()
	return a.receive(ctx, r, "export "+snapshot, file)
}

// receive writes what comes to a file, whole or not at all, or with "-" to standard output.
func (a *app) receive(ctx context.Context, r io.Reader, what, file string) (err error) {
	bar := progress.New(a.stderr)
	defer bar.Clear()
	from := &progress.Reader{R: r, See: func(n int64) { bar.Count(what, n) }}
	if file == "-" {
		_, err := io.Copy(a.stdout, from)
		return err
	}
	// Its name is taken at the end: one that broke off is nobody's archive.
	w, err := os.CreateTemp(filepath.Dir(file), ".sandpit-*")
	if err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be written", file)
	}
	defer func() {
		if err != nil {
			_ = w.Close()
			_ = os.Remove(w.Name())
		}
	}()
	if _, err := io.Copy(w, from); err != nil {
		if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
			return err
		}
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written", file)
	}
	if err := w.Sync(); err != nil {
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written", file)
	}
	if err := w.Close(); err != nil {
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written", file)
	}
	if err := os.Rename(w.Name(), file); err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be put in place", file)
	}
	bar.Clear()
	fmt.Fprintf(a.stderr, "%s: %s\n", output.Printable(file), output.Bytes(from.Done))
	return nil
}

func newSnapshotImport(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Make a snapshot from a file that export wrote, and print its id",
		Long: `Make a snapshot from a file that export wrote, and print its id; "-" is standard input. The snapshot
belongs to no sandbox. The server has to have the image that it was made on.`,
		Example: `  id=$(sandpit snapshot import web.tar.gz)
  sandpit create --name again --from-snapshot $id`,
		Args: takes(1, 1),
	}
	name := c.Flags().String("name", "", "the snapshot's name (default: the one in the archive)")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		bar := progress.New(a.stderr)
		defer bar.Clear()
		from, size, done, err := a.openImport(args[0], bar)
		if err != nil {
			return err
		}
		defer done()
		cl, err := a.client()
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
		return output.One(a.stdout, *out, s, name, s.ID)
	}
	return c
}

// openImport opens a file to import, or standard input for "-", whose size is 0: unknown. Reading it
// moves the bar; done closes it.
func (a *app) openImport(file string, bar *progress.Bar) (from io.Reader, size int64, done func(), err error) {
	if file == "-" {
		return &progress.Reader{R: a.stdin, See: func(n int64) { bar.Count("import", n) }}, 0, func() {}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, nil, fault.Wrap(fault.NotFound, err, "%s cannot be read", file)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, 0, nil, fault.New(fault.Invalid, "%s is not a file (%s)", file, info.Mode().Type())
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, nil, fault.Wrap(fault.NotFound, err, "%s cannot be read", file)
	}
	size = info.Size()
	return &progress.Reader{R: f, See: func(n int64) { bar.Bytes("import "+filepath.Base(file), n, size) }}, size, func() { _ = f.Close() }, nil
}
