// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/synonym"
)

// synonymous returns the error for arguments that begin with another tool's name of a command, and
// nil for all others.
func synonymous(c *cobra.Command, args []string) error {
	if c != c.Root() || len(args) == 0 {
		return nil
	}
	line := synonym.Commands()[args[0]]
	if line == "" {
		return nil
	}
	return exit.Misuse(c, "there is no command %q; here it is: %s", c.CommandPath()+" "+args[0], line)
}
