// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func newPause(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "pause SANDBOX...",
		Short: "Freeze sandboxes with all that runs in them",
		Long: `Freeze sandboxes: their processes stand still, keep their memory, and go on where they were when they are
resumed. Timeouts of commands stand still too, and nothing is counted as running time.`,
		Args:              takes(1, -1),
		ValidArgsFunction: a.completeAll,
	}
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.each(c.Context(), refs, *out, cl.Pause)
	}
	return c
}

func newResume(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:               "resume SANDBOX...",
		Short:             "Let paused sandboxes go on",
		Args:              takes(1, -1),
		ValidArgsFunction: a.completeAll,
	}
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.each(c.Context(), refs, *out, cl.Resume)
	}
	return c
}
