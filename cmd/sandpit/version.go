// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newVersion(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "version [flags]", Short: "Print the version of this program", Args: app.Takes(0, 0)}
	out := output.FormatFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		if out.IsData() {
			return output.Data(a.Stdout, *out, map[string]string{
				"version": a.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			})
		}
		_, err := fmt.Fprintln(a.Stdout, versionLine(a))
		return err
	}
	return c
}

// versionLine returns what the command version prints, and the flag --version.
func versionLine(a *app.App) string {
	return fmt.Sprintf("sandpit %s (%s, %s/%s)", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
