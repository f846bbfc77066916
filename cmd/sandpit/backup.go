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

	"sandpit.dev/backup"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/fault"
)

func newBackup(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "backup [flags] FILE",
		Short: "Write everything the server keeps to a file, while it runs",
		Long: `Write everything the server keeps to a file, while it runs: records, disks of sandboxes, snapshots,
volumes, artifacts, keys. It needs the server's own administrator's token. The file is written whole or
not at all, checked, and for its owner alone to read: it has every secret and token, so keep it as
closely as the server. "sandpit restore" makes a data directory of it. What sandboxes run goes on.

A disk that cannot be in a backup is left out and named; then the exit status is 1, and the file is
good for all else.`,
		Example: `  sandpit backup /backup/sandpit-$(date +%F).tar`,
		Args:    app.Takes(1, 1),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		return interrupt.Ended(ctx, writeBackup(ctx, a, cl, args[0]))
	}
	return c
}

func writeBackup(ctx context.Context, a *app.App, cl *client.Client, file string) (err error) {
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return fault.New(fault.Invalid, "%s is not a file (%s)", file, info.Mode().Type()).WithRemedy("name a file")
	}
	// Its name is taken at the end: one that broke off is nobody's backup.
	w, err := os.CreateTemp(filepath.Dir(file), ".sandpit-backup-*") // with mode 0600
	if err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be written", file)
	}
	defer func() {
		if err != nil {
			_ = w.Close()
			_ = os.Remove(w.Name())
		}
	}()
	r, err := cl.Backup(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	bar := progress.New(a.Stderr)
	defer bar.Clear()
	from := &progress.Reader{R: r, See: func(n int64) { bar.Count("backup", n) }}
	to := &target{w: w}
	m, err := backup.Verify(io.TeeReader(from, to))
	if err == nil {
		_, err = io.Copy(to, from) // what tar has after its end
	}
	if err == nil {
		err = w.Sync()
	}
	if err == nil {
		err = w.Close()
	}
	if to.err != nil {
		err = to.err
	}
	switch {
	case err != nil && (to.err != nil || fault.As(err).Code == fault.Internal):
		return fault.Wrap(fault.Exhausted, err, "%s cannot be written (%s)", file, err).WithRemedy("free space there, or name a file elsewhere; nothing is left of this one")
	case err != nil:
		return err
	}
	if err := os.Rename(w.Name(), file); err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be put in place", file)
	}
	if err := syncDir(filepath.Dir(file)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s is written, and may be gone after a power cut", file)
	}
	bar.Clear()
	fmt.Fprintf(a.Stderr, "%s: %s; it has every secret of the server\n", output.Printable(file), output.Bytes(from.Done))
	left := 0
	for _, p := range m.Parts {
		if p.LeftOut != "" {
			left++
			fmt.Fprintf(a.Stderr, "left out: %s: %s\n", output.Printable(p.Name), output.Printable(p.LeftOut))
		}
	}
	if left > 0 {
		return &exit.Error{Status: exit.StatusFailed}
	}
	return nil
}

// target remembers that writing failed, and why.
type target struct {
	w   io.Writer
	err error
}

func (t *target) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	if err != nil {
		t.err = err
	}
	return n, err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
