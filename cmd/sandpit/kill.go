// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func newKill(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "kill [flags] SANDBOX PROCESS...",
		Short: "Kill processes of a sandbox, or send them a signal",
		Long: `Kill processes of a sandbox with all that they started, and wait until nothing of them is left; or with -s
send them a signal. Killing what has ended is no failure; a signal to it is one.`,
		Example: `  sandpit kill web p1q2r3s4t5u6v7w8
  sandpit kill -s INT web $(sandpit ps -q web)`,
		Args:              takes(2, -1),
		ValidArgsFunction: a.completeProcess,
	}
	signal := c.Flags().StringP("signal", "s", "", "send this signal instead, by name or number")
	tree := c.Flags().Bool("tree", false, "with -s: to all that they started as well")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *tree && *signal == "" {
			return misuse(c, "--tree is for --signal; a kill always reaches all that a process started")
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		var last error
		for _, id := range args[1:] {
			p := cl.OpenProcess(args[0], id)
			if *signal != "" {
				err = p.Signal(c.Context(), *signal, *tree)
			} else {
				err = p.Kill(c.Context())
			}
			if err != nil && last != nil {
				a.say(last)
			}
			if err != nil {
				last = err
			}
		}
		return last
	}
	return c
}
