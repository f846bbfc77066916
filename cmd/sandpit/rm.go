// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

func newRm(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "rm [flags] SANDBOX...",
		Short: "Delete sandboxes and all that is in them",
		Long: `Delete sandboxes and all that is in them. Snapshots that have a name stay, as do volumes. One that runs or
is paused is deleted only with -f, which also takes one that does not exist for a success. The names of those
that were deleted are printed.`,
		Args:              app.Takes(1, -1),
		ValidArgsFunction: a.CompleteAll,
	}
	force := c.Flags().BoolP("force", "f", false, "also those that run; no complaint about those that do not exist")
	c.RunE = func(c *cobra.Command, refs []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		var last error
		for _, ref := range refs {
			err := remove(c.Context(), cl, ref, *force)
			switch {
			case err == nil:
				fmt.Fprintln(a.Stdout, output.Printable(ref))
			case *force && fault.Is(err, fault.NotFound):
			case last != nil:
				a.Say(last)
				last = err
			default:
				last = err
			}
		}
		return last
	}
	return c
}

func remove(ctx context.Context, cl *client.Client, ref string, force bool) error {
	if !force {
		s, err := cl.Get(ctx, ref)
		if err != nil {
			return err
		}
		if s.Status != "stopped" && s.Status != "archived" && s.Status != "failed" {
			return fault.New(fault.State, "the sandbox %s is %s", ref, s.Status).
				WithRemedy("stop it first (sandpit stop %s), or delete it all the same with -f", ref)
		}
	}
	return cl.Delete(ctx, ref)
}
