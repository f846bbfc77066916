// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

// synonymous returns the error for arguments that begin with another tool's name of a command, and
// nil for all others.
func synonymous(c *cobra.Command, args []string) error {
	if c != c.Root() || len(args) == 0 {
		return nil
	}
	line := synonyms()[args[0]]
	if line == "" {
		return nil
	}
	return misuse(c, "there is no command %q; here it is: %s", c.CommandPath()+" "+args[0], line)
}

// synonyms are names that the commands of other tools have (docker, kubectl, and the CLIs of other
// sandboxes), with the command here that does the same.
func synonyms() map[string]string {
	m := make(map[string]string)
	for command, names := range map[string][]string{
		"sandpit activity":        {"events", "history"},
		"sandpit cp":              {"scp", "push", "put", "download", "upload"},
		"sandpit create":          {"new", "init", "spawn"},
		"sandpit fork":            {"clone", "duplicate"},
		"sandpit forward":         {"port-forward", "tunnel"},
		"sandpit image build":     {"build", "pull"},
		"sandpit ls":              {"container", "containers", "sandbox", "sandboxes"},
		"sandpit inspect":         {"describe", "get"},
		"sandpit mcp config":      {"config", "setup"},
		"sandpit pause":           {"freeze", "suspend"},
		"sandpit preview":         {"expose", "open", "url"},
		"sandpit ps":              {"top"},
		"sandpit reset":           {"recreate", "wipe", "reinstall"},
		"sandpit restart":         {"reboot"},
		"sandpit resume":          {"unpause", "unfreeze", "thaw"},
		"sandpit rm":              {"delete", "del", "destroy", "remove", "terminate"},
		"sandpit rollback":        {"revert", "undo"},
		"sandpit serve":           {"daemon"},
		"sandpit shell":           {"ssh", "sh", "bash", "terminal", "enter"},
		"sandpit snapshot create": {"commit", "checkpoint", "save"},
		"sandpit snapshot import": {"load", "import"},
		"sandpit snapshot export": {"export"},
		"sandpit login":           {"auth", "signin"},
	} {
		for _, name := range names {
			m[name] = command
		}
	}
	return m
}
