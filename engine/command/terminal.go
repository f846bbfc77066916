// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/defaults"
	"sandpit.dev/sandbox"
)

// Terminal is an interactive command.
type Terminal struct {
	Shell string // at most one of Shell and Argv; neither: a login shell
	Argv  []string
	Cols  uint16 // 1 to 1000; zero: 80
	Rows  uint16 // 1 to 1000; zero: 24
	Term  string // the kind of terminal; empty: xterm-256color
	User  string // "sandbox" or "root"; empty: sandbox
	Cwd   string
	Env   map[string]string
}

// ShellText is what the shell of the terminal runs: a login shell, where nothing else
// is asked for.
func (r *Terminal) ShellText() string {
	if r.Shell == "" && len(r.Argv) == 0 {
		return sandbox.LoginShell
	}
	return r.Shell
}

// Bounds of a terminal.
const (
	MaxTermSize = 1000 // columns, and rows
	maxTermName = 64
)

// terminalLog is how much of a terminal's output is kept: of the last of it.
const terminalLog = 4 << 20

// Command checks a request and makes of it what the agent needs.
func (r *Terminal) Command(set *defaults.Settings) (agent.Command, error) {
	var k check.Fields
	shell := r.ShellText()
	k.Command(shell, r.Argv)
	k.Env(r.Env)
	cmd := agent.Command{
		Shell: shell, Argv: r.Argv, Cwd: k.Cwd(r.Cwd, r.User), Env: r.Env, Terminal: checkTerminal(&k, r.Cols, r.Rows, r.Term),
		StreamStdin: true, MaxStdout: terminalLog, MaxStderr: 1, Rolling: true,
	}
	var err error
	if cmd.User, err = k.User(r.User, set.ForbidRoot); err != nil {
		return cmd, err
	}
	if r.User == "" {
		cmd.User = "" // the sandbox says who
	}
	return cmd, k.Err()
}

// checkTerminal checks what a terminal is to be, and fills in what is left out.
func checkTerminal(k *check.Fields, cols, rows uint16, kind string) *agent.Terminal {
	if cols > MaxTermSize {
		k.Bad("cols", "%d is outside 1 to %d", cols, MaxTermSize)
	}
	if rows > MaxTermSize {
		k.Bad("rows", "%d is outside 1 to %d", rows, MaxTermSize)
	}
	if len(kind) > maxTermName || !check.Plain(kind) {
		k.Bad("term", "%q is not a valid terminal type of at most %d bytes", sandbox.Clip(kind, 40), maxTermName)
	}
	t := &agent.Terminal{Cols: cols, Rows: rows, Term: kind}
	if t.Cols == 0 {
		t.Cols = 80
	}
	if t.Rows == 0 {
		t.Rows = 24
	}
	if t.Term == "" {
		t.Term = "xterm-256color"
	}
	return t
}
