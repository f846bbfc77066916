// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/internal/excerpt"
	"sandpit.dev/sandbox"
)

// Bounds of a command. Beyond them Start is fault.Invalid.
const (
	MaxArgs        = wire.MaxArgs        // arguments
	MaxArgBytes    = wire.MaxArgBytes    // of all arguments together
	MaxEnv         = wire.MaxEnv         // variables
	MaxEnvBytes    = wire.MaxEnvBytes    // of their names and values together
	MaxShell       = wire.MaxShell       // bytes of Command.Shell
	MaxStdin       = wire.MaxStdin       // bytes of Command.Stdin
	MaxRedact      = wire.MaxRedact      // values of Command.Redact
	MaxRedactValue = wire.MaxRedactValue // bytes of each of them
	MaxRedactBytes = wire.MaxRedactBytes // and of all together: no more than variables can hold
	MaxOutput      = wire.MaxOutput      // the highest cap of a stream, in bytes
	DefaultOutput  = wire.DefaultOutput
)

// LostPatience is how long a lossless command waits for a follower that was lost.
const LostPatience = wire.LostPatience

// Command is what to run.
type Command struct {
	ID    string   // chosen by the caller, as by sandbox.NewProcessID; one that exists is fault.Exists
	Shell string   // text for /bin/bash -c, or /bin/sh without bash; or:
	Argv  []string // a program, looked for in PATH, and its arguments

	Cwd  string            // as paths of files are; empty: the workspace. A missing one is fault.Invalid
	Env  map[string]string // over the sandbox's own and the built-in variables
	User string            // "" or "sandbox": the unprivileged user; "root"

	Stdin       []byte // all of its input; or:
	StreamStdin bool   // input comes by Process.Write, until Process.CloseStdin

	Timeout   time.Duration // the whole tree is killed then, with the cause timeout; 0: never
	MaxStdout int64         // bytes kept of each stream; 0: DefaultOutput. What is more is counted, and the
	MaxStderr int64         // stream flagged as truncated; the program does not wait for anyone
	Rolling   bool          // of both streams together the last bytes are kept instead of the first; some more may be

	// Lossless: who starts it, and who attaches so, gets all of the output. The program waits where
	// one of them is slow, and for [LostPatience] after the last one was lost. It is Rolling besides.
	// An agent of a build that cannot do it keeps MaxStdout and MaxStderr instead.
	Lossless bool

	Terminal *Terminal // a pseudo terminal for all three streams; its output is Stdout

	// Merge has Stdout and Stderr be one pipe, whose output is Stdout, in the order in which the
	// program wrote it. An agent that cannot do it is fault.Unsupported, and the command does not run.
	Merge bool

	// Redact are values that no output, log or record of the command is to have: each byte of an
	// occurrence becomes a '*', as package redact finds them. What may be the beginning of one is
	// held back, for 50 ms at most, and 10 ms at a terminal, whose user sees what is typed; what
	// was passed on by then stays as it is. An agent that cannot do it is fault.Unsupported, and
	// the command does not run.
	Redact [][]byte
}

// Terminal is a pseudo terminal. Closing the Process that started it hangs it
// up: SIGHUP, and two seconds later the whole tree is killed.
type Terminal struct {
	Cols, Rows uint16 // 1 to 2000
	Term       string // $TERM; empty: xterm-256color
	Stays      bool   // closing does not hang it up; it can be attached to again
}

// checkText refuses text that JSON would change on its way to the agent, which checks the rest.
func (c *Command) checkText() error {
	if !utf8.ValidString(c.Shell) {
		return notText("command", c.Shell)
	}
	for _, a := range c.Argv {
		if !utf8.ValidString(a) {
			return notText("command", a)
		}
	}
	if !utf8.ValidString(c.Cwd) {
		return notText("cwd", c.Cwd)
	}
	for name, value := range c.Env {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return notText("env", name+"="+value)
		}
	}
	return nil
}

// output returns, by Stream, the bytes that the agent may send of a command.
func (c *Command) output() [3]int64 {
	most := func(n int64) int64 {
		if n == 0 {
			return DefaultOutput
		}
		return n
	}
	if c.Rolling || c.Lossless {
		return unbounded()
	}
	return [3]int64{sandbox.Stdout: most(c.MaxStdout), sandbox.Stderr: max(most(c.MaxStderr), 4096)}
}

// unbounded is output for a process with a rolling log, which may go on for ever.
func unbounded() [3]int64 {
	return [3]int64{sandbox.Stdout: math.MaxInt64, sandbox.Stderr: math.MaxInt64}
}

// notText refuses text that JSON would change on its way.
func notText(field, s string) error {
	return fault.InvalidField(field, "%q is not valid UTF-8", sandbox.Clip(s, 80))
}

func (c *Command) wire() *wire.Start {
	st := &wire.Start{
		Shell: c.Shell, Argv: c.Argv, Cwd: c.Cwd, Env: c.Env, User: c.User,
		StdinSize: int64(len(c.Stdin)), StreamStdin: c.StreamStdin,
		MaxStdout: c.MaxStdout, MaxStderr: c.MaxStderr, Rolling: c.Rolling, Lossless: c.Lossless, Merge: c.Merge && c.Terminal == nil, Redact: c.Redact,
	}
	if st.TimeoutMS = c.Timeout.Milliseconds(); c.Timeout%time.Millisecond > 0 {
		st.TimeoutMS++ // never rounded down to none
	} else if c.Timeout%time.Millisecond < 0 {
		st.TimeoutMS-- // nor up to it, but refused
	}
	if t := c.Terminal; t != nil {
		st.Terminal = &wire.Terminal{Cols: t.Cols, Rows: t.Rows, Term: t.Term, Stays: t.Stays}
	}
	return st
}

// record checks a record from the agent, which must be that of id.
func record(w wire.Record, id string) (sandbox.Process, error) {
	if w.ID != id || !sandbox.ValidID(id) || w.LastSeq < 0 {
		return sandbox.Process{}, fault.New(fault.Unavailable, "the sandbox's agent gave an answer that makes no sense")
	}
	rec := sandbox.Process{
		ID: w.ID, State: sandbox.ProcessRunning, Argv: w.Argv, Shell: w.Shell, Clipped: w.Clipped,
		Cwd: w.Cwd, User: clean(w.User, 100), Terminal: w.Terminal, Rolling: w.Rolling,
		StartedAt: w.Started, PID: w.PID, LastSeq: w.LastSeq,
	}
	if w.Result != nil || w.State == wire.Exited {
		if w.Result == nil {
			w.Result = &wire.Result{ExitCode: -1, Cause: wire.CauseHost}
		}
		res := result(*w.Result)
		rec.State, rec.Result = sandbox.ProcessExited, &res
	}
	return rec, nil
}

// result checks a result from the agent.
func result(w wire.Result) sandbox.Result {
	res := sandbox.Result{
		ExitCode: w.ExitCode, Signal: clean(w.Signal, 16), Cause: cause(w.Cause),
		CauseDetail: clean(w.CauseDetail, 500), Duration: max(0, time.Duration(w.DurationNS)), EndedAt: w.Ended,
		StdoutBytes: max(0, w.StdoutBytes), StderrBytes: max(0, w.StderrBytes),
		StdoutTruncated: w.StdoutTruncated, StderrTruncated: w.StderrTruncated,
		StdoutLost: max(0, w.StdoutLost), StderrLost: max(0, w.StderrLost),
		StdoutCut: cut(w.StdoutCut), StderrCut: cut(w.StderrCut),
		Stdout: valid(w.Stdout), Stderr: valid(w.Stderr),
	}
	if res.ExitCode < -1 || res.ExitCode > 255 {
		res.ExitCode = 255
	}
	if !strings.HasPrefix(res.Signal, "SIG") {
		res.Signal = ""
	}
	return res
}

func valid(e *excerpt.Excerpt) *excerpt.Excerpt {
	if e == nil || !e.Valid() {
		return nil
	}
	return e
}

func cut(s string) sandbox.Cut {
	switch c := sandbox.Cut(s); c {
	case sandbox.CutLimit, sandbox.CutLogs, sandbox.CutDisk, sandbox.CutRolled, sandbox.CutAgent:
		return c
	}
	return ""
}

// cause returns s if it is a cause that a process can have. Any other means that the process was
// killed, and CauseDetail says by what.
func cause(s string) sandbox.Cause {
	switch c := sandbox.Cause(s); c {
	case sandbox.CauseNone, sandbox.CauseTimeout, sandbox.CauseOOM, sandbox.CausePids, sandbox.CauseDisk,
		sandbox.CauseKilled, sandbox.CauseStopped, sandbox.CauseHost, sandbox.CauseIdle, sandbox.CauseTTL, sandbox.CauseUser:
		return c
	}
	return sandbox.CauseKilled
}
