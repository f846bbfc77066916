// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// Group is what a command does that only holds others: it shows them, and
// refuses what is none of them.
func Group(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	if err := synonymous(c, args); err != nil {
		return err
	}
	c.SuggestionsMinimumDistance = c.Root().SuggestionsMinimumDistance
	near := c.SuggestionsFor(args[0])
	if len(near) == 0 {
		return exit.Misuse(c, "there is no command %q", c.CommandPath()+" "+args[0])
	}
	return exit.Misuse(c, "there is no command %q; did you mean %s?", c.CommandPath()+" "+args[0], strings.Join(near, " or "))
}

// Takes checks how many arguments there are; most -1: any number.
func Takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		return exit.Misuse(c, "%s: it was given %s; the usage is: %s", c.CommandPath(), output.Plural(len(args), "argument"), c.UseLine())
	}
}

// NamedByFlag refuses arguments, of which one is likely the name of what is to be made.
func NamedByFlag(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return exit.Misuse(c, "a %s is named by a flag: %s --name %s", what, c.CommandPath(), args[0])
		}
		return Takes(0, 0)(c, args)
	}
}
