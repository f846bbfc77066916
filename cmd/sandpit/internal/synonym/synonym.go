// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package synonym knows by which names other tools call what commands here do.
package synonym

import "strings"

// Commands are names that the commands of other tools have (docker, kubectl, and the CLIs of other
// sandboxes), with the command here that does the same. After a colon comes what is different.
func Commands() map[string]string {
	m := make(map[string]string)
	for command, names := range map[string][]string{
		"sandpit activity":        {"history"},
		"sandpit cp":              {"scp", "sftp", "rsync", "push", "put", "download", "upload"},
		"sandpit create":          {"new", "init", "spawn", "apply"},
		"sandpit diff":            {"changes"},
		"sandpit fork":            {"clone", "duplicate", "scale"},
		"sandpit forward":         {"port-forward", "tunnel"},
		"sandpit image build":     {"build"},
		"sandpit template create": {"template build"},
		"sandpit image pull":      {"pull"},
		"sandpit image rm":        {"rmi"},
		"sandpit ls":              {"container", "containers", "sandbox", "sandboxes", "get pods", "get pod", "get sandboxes", "get all"},
		"sandpit inspect":         {"describe", "get"},
		"sandpit mcp config":      {"config", "setup"},
		"sandpit network set":     {"network connect", "network create"},
		"sandpit network show":    {"network ls", "network list", "network inspect"},
		"sandpit pause":           {"freeze", "suspend"},
		"sandpit ports":           {"port"},
		"sandpit preview":         {"expose", "url", "preview-url"},
		"sandpit ps":              {"metrics"},
		"sandpit rename":          {"mv", "move"},
		"sandpit reset":           {"recreate", "wipe", "reinstall"},
		"sandpit restart":         {"reboot"},
		"sandpit resume":          {"unpause", "unfreeze", "thaw"},
		"sandpit rm":              {"delete", "del", "destroy", "remove", "terminate", "prune", "system prune", "sandbox kill"},
		"sandpit rollback":        {"revert", "undo", "rollout", "rollout undo"},
		"sandpit serve":           {"daemon"},
		"sandpit server use":      {"config use-context", "context use"},
		"sandpit shell":           {"ssh", "sh", "bash", "terminal", "enter", "sandbox connect"},
		"sandpit snapshot create": {"commit", "checkpoint", "save"},
		"sandpit snapshot import": {"load", "import"},
		"sandpit snapshot export": {"export"},
		"sandpit snapshot ls":     {"snapshot inspect"},
		"sandpit stop":            {"container kill"},
		"sandpit login":           {"auth", "auth login", "signin"},
		"sandpit volume ls":       {"volume inspect"},
	} {
		for _, name := range names {
			name, note, noted := strings.Cut(name, ":")
			m[name] = command
			if noted {
				m[name] += ":" + note
			}
		}
	}
	return m
}

// Noun reports whether a word of another tool's is what a sandbox is called there.
func Noun(word string) bool {
	switch word {
	case "sandbox", "sandboxes", "container", "containers":
		return true
	}
	return false
}

// Flag returns what there is here in place of a flag of another tool's, which the command does not
// have; empty: it is none of those.
func Flag(command, name string) string {
	if name == "namespace" || name == "n" {
		return "leave it out: sandboxes have no namespaces, and a token has one project"
	}
	switch command {
	case "run":
		switch name {
		case "rm":
			return "here it is: sandpit run --image IMAGE -- CMD, which deletes the sandbox afterwards"
		case "d", "detach":
			return "here it is: sandpit create --name NAME, then sandpit exec --detach NAME -- CMD"
		}
		fallthrough
	case "create":
		switch name {
		case "m", "mem":
			return "here it is: --memory"
		case "cpus":
			return "here it is: --cpu"
		case "l":
			return "here it is: --label"
		case "p", "P", "publish":
			return "here it is: sandpit forward SANDBOX LOCAL:PORT, or sandpit preview SANDBOX PORT for a link"
		case "privileged", "cap-add", "device":
			return "leave it out: sandpit exec --user root may change the sandbox's system, and nothing the host"
		}
	case "stop", "restart":
		if name == "t" || name == "time" {
			return "leave it out: what runs is given time to end"
		}
	}
	return ""
}
