// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func newStop(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:               "stop SANDBOX...",
		Short:             "Stop sandboxes: their processes end, their files stay",
		Args:              takes(1, -1),
		ValidArgsFunction: a.completeAll,
	}
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.each(c.Context(), refs, *out, cl.Stop)
	}
	return c
}
