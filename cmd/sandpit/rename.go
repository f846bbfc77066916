// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newRename(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "rename [flags] SANDBOX NAME",
		Short: "Give a sandbox another name",
		Long: `Give a sandbox another name, its key, and print it. It is found by that name or by its id from then on, also while
it runs, and its host name follows. A name that another sandbox has is refused; the name that it has already is no error.`,
		Example: `  sandpit rename web web-old
  sandpit rename "$(sandpit create)" web`,
		Args:              app.Takes(2, 2),
		ValidArgsFunction: a.CompleteFirst,
	}
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.One(c.Context(), args[0], *out, func(ctx context.Context, ref string) (*v1.Sandbox, error) {
			return cl.Rename(ctx, ref, args[1])
		})
	}
	return c
}
