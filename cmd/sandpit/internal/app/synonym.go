// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/synonym"
)

// synonymous returns the error for arguments of c that begin with another tool's name of a command,
// and nil for all others.
func synonymous(c *cobra.Command, args []string) error {
	if len(args) == 0 || c != c.Root() && c.Parent() != c.Root() {
		return nil
	}
	known, words := synonym.Commands(), args
	if c != c.Root() {
		words = []string{c.Name(), args[0]}
	}
	typed, line := 1, ""
	if c == c.Root() {
		line = known[words[0]]
	}
	if len(words) > 1 {
		next := words[1]
		pair := known[words[0]+" "+next]
		if pair == "" && synonym.Noun(words[0]) { // the things themselves, of which the commands here need not speak
			if pair = known[next]; pair == "" {
				if found, _, err := c.Root().Find([]string{next}); err == nil && found != c.Root() {
					pair = found.CommandPath()
				}
			}
		}
		if pair != "" {
			typed, line = 2, pair
		}
	}
	if line == "" {
		return nil
	}
	command, _, _ := strings.Cut(line, ":")
	here, _, err := c.Root().Find(strings.Fields(command)[1:])
	if err != nil {
		here = c.Root()
	}
	return exit.Misuse(here, "there is no command %q; here it is: %s", "sandpit "+strings.Join(words[:typed], " "), line)
}
