// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/daemon"
	"sandpit.dev/fault"
)

// NewRestore returns the command that makes a data directory of a backup.
func NewRestore(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "restore [flags] FILE --data DIR",
		Short: "Make a data directory of a backup",
		Long: `Make a data directory of a file that "sandpit backup" wrote. No server is needed; the directory must be
empty or not there, and it takes root, as the server does. The backup is checked to its end before
anything is put in place, and what fails after that is undone.

A server on the directory has every sandbox stopped as after a power cut, with its disk, its snapshots
and volumes, secrets, tokens and artifacts. Images are not in a backup: those that are needed are named.`,
		Example: `  sandpit restore /backup/sandpit.tar --data /var/lib/sandpit`,
		Args:    app.Takes(1, 1),
	}
	data := c.Flags().String("data", "", "directory to make; it must be empty or not there")
	config := c.Flags().String("config", "", "YAML file with the settings of the server to be")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *data == "" {
			return exit.Misuse(c, "--data is missing: the directory to restore into")
		}
		cfg := daemon.DefaultConfig()
		path := *config
		if path == "" {
			path = a.Getenv("SANDPIT_CONFIG")
		}
		if path != "" {
			if err := cfg.ReadFile(path); err != nil {
				return err
			}
		}
		if err := cfg.ReadEnv(a.Getenv); err != nil {
			return err
		}
		cfg.Data = *data
		if err := cfg.Check(); err != nil {
			return err
		}
		f, err := os.Open(args[0])
		if err != nil {
			return fault.Wrap(fault.NotFound, err, "%s cannot be read", args[0])
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			return fault.Wrap(fault.Invalid, err, "%s is not a file", args[0])
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		bar := progress.New(a.Stderr)
		defer bar.Clear()
		got, err := daemon.Restore(ctx, cfg, f, func(what string, done int64) { bar.Bytes(what, done, info.Size()) })
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		bar.Clear()
		fmt.Fprintf(a.Stderr, "%s: sandboxes: %d, snapshots: %d, volumes: %d, as of %s\n", output.Printable(cfg.Data), got.Sandboxes, got.Snapshots, got.Volumes,
			got.Manifest.Time.Format("2006-01-02 15:04:05 MST"))
		for _, i := range got.Manifest.Images {
			fmt.Fprintf(a.Stderr, "needs the image %s in the build %s\n", output.Printable(i.Name), output.Printable(i.Digest))
		}
		for _, p := range got.Manifest.Parts {
			if p.LeftOut != "" {
				fmt.Fprintf(a.Stderr, "not in the backup: %s: %s\n", output.Printable(p.Name), output.Printable(p.LeftOut))
			}
		}
		return nil
	}
	return c
}
