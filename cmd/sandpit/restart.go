// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"sandpit.dev/fault"
)

func newRestart(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "restart [flags] SANDBOX...",
		Short: "Give sandboxes an empty disk, as if they were new",
		Long: `Give sandboxes an empty disk, as if they were new: their processes end and all files in them are lost, but
those on volumes. Id, key, limits, labels and snapshots stay.

To start the processes' world anew and keep the files, use sandpit stop and sandpit start.`,
		Example: `  sandpit snapshot create web
  sandpit restart -f web`,
		Args:              takes(1, -1),
		ValidArgsFunction: a.completeAll,
	}
	force := c.Flags().BoolP("force", "f", false, "yes, all files are to be lost")
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		if !*force {
			return fault.New(fault.State, "a restart gives %s an empty disk: the files in it are lost", refs[0]).
				WithRemedy("say -f if that is meant; keep them first with sandpit snapshot create %[1]s; or keep them all with sandpit stop %[1]s and sandpit start %[1]s", refs[0])
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.each(c.Context(), refs, *out, cl.Restart)
	}
	return c
}
