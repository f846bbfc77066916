// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package synonym knows by which names other tools call what commands here do.
package synonym

// Commands are names that the commands of other tools have (docker, kubectl, and the CLIs of other
// sandboxes), with the command here that does the same.
func Commands() map[string]string {
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
