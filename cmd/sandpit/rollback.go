// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
)

func newRollback(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "rollback [flags] SANDBOX --to SNAPSHOT",
		Short: "Give a sandbox the disk of a snapshot",
		Long: `Give a sandbox the disk of a snapshot: its processes end, and what changed since is lost, but on volumes.
Id, key and snapshots stay. One that ran runs afterwards; one that was stopped stays stopped.

SNAPSHOT is the name of one of its snapshots, the id of any, or base: the image, on which nothing was
changed.`,
		Example: `  sandpit snapshot create web --name before
  sandpit exec web -- pip install -r requirements.txt
  sandpit rollback web --to before`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeFirst,
	}
	to := c.Flags().String("to", "", "name or id of the snapshot, or base")
	_ = c.RegisterFlagCompletionFunc("to", a.completePoint("base"))
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if *to == "" {
			return misuse(c, "--to is missing: name a snapshot (sandpit snapshot ls %s lists them), or base", args[0])
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.one(c.Context(), args[0], *out, func(ctx context.Context, ref string) (*v1.Sandbox, error) {
			return cl.Rollback(ctx, ref, *to)
		})
	}
	return c
}
