// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/defaults"
	"sandpit.dev/engine/process"
	"sandpit.dev/internal/budget"
)

// Bounds of a command.
const (
	MaxStdin          = agent.MaxStdin  // bytes given with a command
	MaxCollected      = 16 << 20        // bytes a stream, held for a caller without a sink
	MaxStreamed       = agent.MaxOutput // bytes a stream, to a sink
	DefaultOutput     = 1 << 20         // bytes a stream, of a command that names no bound
	MaxCommandTimeout = defaults.MaxCommandTimeout
)

// Request is one command.
type Request struct {
	Shell string   // run by a shell; or
	Argv  []string // a program and its arguments. Exactly one of the two
	Cwd   string   // relative to the workspace; empty: the workspace, or root's home
	Env   map[string]string
	User  string // "sandbox" or "root"; empty: sandbox
	Stdin []byte // at most MaxStdin bytes; or:
	// StreamStdin: the input comes by WriteInput. Without either it is empty.
	StreamStdin bool
	Timeout     time.Duration // the command is killed then; zero: Defaults.CommandTimeout
	Wait        time.Duration // Exec returns then at the latest; zero: when the command has ended
	MaxStdout   int64         // bytes to keep; zero: DefaultOutput
	MaxStderr   int64
	// Started, if not nil, is called once, when the command is about to be followed
	// and before anything of it is given out: whoever goes away then knows its id.
	Started func(processID string)
	// KillOnDisconnect kills the command when ctx ends, or the sink fails, before
	// Exec has returned. Else it goes on.
	KillOnDisconnect bool
	// Lossless: the sink gets all of the output. Where it is slow the command waits for it, also
	// for a while after it was lost, and the bytes of a frame hold only until it returns; what is kept is the end of the output, and of both streams
	// together as much as MaxStdout and MaxStderr say.
	Lossless bool
	// Limited, if not nil, is called with the command's time limit before Started.
	Limited func(time.Duration)
	// After is with ExecAgain the frame behind which the output goes on. If its log is read from
	// there, Resumed is called before Started.
	After   int64
	Resumed func()
	// Room is where the output that is collected counts until its owner closes it; nil: nowhere.
	Room *budget.Room
	// TellArtifacts has the result say whether the artifacts were left alone.
	TellArtifacts bool
	Mark          process.Mark
	MergeOutput   bool     // stdout and stderr are one pipe, whose output is stdout, in the program's order
	Redact        [][]byte // values that its output and its record are not to show, besides the sandbox's secrets
}

// TellLimit tells a command's time limit to who asked for it.
func (r *Request) TellLimit(cmd *agent.Command) {
	if r.Limited != nil {
		r.Limited(cmd.Timeout)
	}
}

// Command checks a request and makes of it what the agent needs. The sandbox's
// own variables are added later.
func (r *Request) Command(set *defaults.Settings, streamed bool) (agent.Command, error) {
	var k check.Fields
	k.Command(r.Shell, r.Argv)
	k.Env(r.Env)
	if len(r.Stdin) > MaxStdin {
		k.Bad("stdin", "has %d bytes, more than %d; put it into a file", len(r.Stdin), MaxStdin)
	}
	if len(r.Stdin) > 0 && r.StreamStdin {
		k.Bad("stdin", "is given at once and streamed; it can be one of them")
	}
	r.Mark.Check(&k)
	k.Timeout("timeout_seconds", r.Timeout, set.MaxCommandTimeout)
	k.Timeout("wait_seconds", r.Wait, MaxCommandTimeout)
	most := int64(MaxCollected)
	if streamed {
		most = MaxStreamed
	}
	k.Bytes("max_stdout", r.MaxStdout, most)
	k.Bytes("max_stderr", r.MaxStderr, most)
	cmd := agent.Command{
		Shell: r.Shell, Argv: r.Argv, Cwd: k.Cwd(r.Cwd, r.User), Env: r.Env, Stdin: r.Stdin, StreamStdin: r.StreamStdin, Timeout: r.Timeout,
		MaxStdout: orDefault(r.MaxStdout, DefaultOutput), MaxStderr: orDefault(r.MaxStderr, DefaultOutput),
		Lossless: r.Lossless && streamed, Merge: r.MergeOutput, Redact: r.Redact,
	}
	if cmd.Timeout == 0 {
		cmd.Timeout = set.CommandTimeout
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

func orDefault(n, def int64) int64 {
	if n == 0 {
		return def
	}
	return n
}
