// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/defaults"
	"sandpit.dev/engine/process"
)

// DefaultDetachedOutput is how many bytes are kept of each stream of a process
// that names no bound: nobody may be there to read it while it runs.
const DefaultDetachedOutput = 16 << 20

// Start is a process that nobody waits for.
type Start struct {
	Shell       string   // run by a shell; or
	Argv        []string // a program and its arguments. Exactly one of the two
	Cwd         string   // relative to the workspace; empty: the workspace, or root's home
	Env         map[string]string
	User        string        // "sandbox" or "root"; empty: sandbox
	Stdin       []byte        // at most MaxStdin bytes; or:
	StreamStdin bool          // it comes by WriteInput; without either it is empty
	Terminal    *TerminalSize // a terminal for all three streams; its input is streamed
	Timeout     time.Duration // it is killed then; zero: never
	MaxStdout   int64         // bytes to keep; zero: DefaultDetachedOutput
	MaxStderr   int64
	MergeOutput bool // stdout and stderr are one pipe, whose output is stdout, in the program's order
	Mark        process.Mark
	// ProcessID is the id that the process was promised, see sandbox.NewProcessID; empty: a new one.
	ProcessID string
}

// TerminalSize is the terminal that a process is started at.
type TerminalSize struct {
	Cols, Rows uint16 // 1 to 1000; zero: 80 and 24
	Term       string // the kind of terminal; empty: xterm-256color
}

// Command checks a request and makes of it what the agent needs.
func (r *Start) Command(set *defaults.Settings) (agent.Command, error) {
	of := Request{
		Shell: r.Shell, Argv: r.Argv, Cwd: r.Cwd, Env: r.Env, User: r.User, Stdin: r.Stdin, StreamStdin: r.StreamStdin || r.Terminal != nil, Timeout: r.Timeout,
		MaxStdout: orDefault(r.MaxStdout, DefaultDetachedOutput), MaxStderr: orDefault(r.MaxStderr, DefaultDetachedOutput),
		MergeOutput: r.MergeOutput, Mark: r.Mark,
	}
	cmd, err := of.Command(set, true)
	var k check.Fields
	if err := k.Take(err); err != nil {
		return cmd, err
	}
	cmd.ID, cmd.Timeout = r.ProcessID, r.Timeout
	if t := r.Terminal; t != nil {
		cmd.Rolling = true
		cmd.MaxStdout, cmd.MaxStderr = orDefault(r.MaxStdout, terminalLog), 1
		cmd.Terminal = checkTerminal(&k, t.Cols, t.Rows, t.Term)
		cmd.Terminal.Stays = true
	}
	return cmd, k.Err()
}
