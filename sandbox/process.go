// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"time"

	"sandpit.dev/internal/excerpt"
)

// ProcessState says whether a process runs.
type ProcessState string

// The states of a process.
const (
	ProcessRunning ProcessState = "running"
	ProcessExited  ProcessState = "exited"
)

// Process is the record of one process in a sandbox.
type Process struct {
	ID        string
	Name      string // which no other of the sandbox has that runs
	Labels    map[string]string
	State     ProcessState
	Argv      []string // as it was started; of a long command the first part
	Shell     string
	Clipped   bool // the command was too long for the record
	Cwd       string
	User      string
	Terminal  bool
	Rolling   bool // its log keeps the last of its output
	StartedAt time.Time
	PID       int     // inside; 0: it never ran
	Result    *Result // nil while it runs
	LastSeq   int64   // number of the last frame of output so far
}

// Result is how a process ended.
type Result struct {
	ExitCode    int    // 128 + the signal's number; -1: unknown, with the cause host
	Signal      string // "SIGKILL"; empty: it exited by itself
	Cause       Cause
	CauseDetail string // the evidence, one line
	Signaled    Signaled
	Duration    time.Duration
	EndedAt     time.Time

	StdoutBytes     int64 // what the program wrote until it ended
	StderrBytes     int64
	StdoutTruncated bool // not all of that is kept
	StderrTruncated bool
	StdoutLost      int64 // of StdoutBytes, those that are in no frame
	StderrLost      int64
	StdoutCut       Cut // why it is truncated
	StderrCut       Cut

	// What it wrote, values of secrets masked; nil: it wrote nothing, or what it wrote is not known.
	Stdout, Stderr *excerpt.Excerpt
}

// Signaled is by whom a process was last sent a signal that ends programs, and which: by whoever signalled or
// killed it, or took its sandbox down; by System for a time limit, a clock of the sandbox and the memory limit. Its
// zero value is that nobody is known to have sent one. A program that catches the signal may end by itself.
type Signaled struct {
	By   string // an actor, as of events
	With string // the signal's name
}

// System is the actor of what the server does by itself.
const System = "system"

// Cut is why a stream is truncated. It is empty from an agent of an earlier build.
type Cut string

// The reasons.
const (
	CutLimit  Cut = "limit"  // it is longer than the process's own limit
	CutLogs   Cut = "logs"   // all logs of the sandbox together had no room for it
	CutDisk   Cut = "disk"   // the disk refused it
	CutRolled Cut = "rolled" // its older frames were dropped, and all others are there
	CutAgent  Cut = "agent"  // the agent ended before the process did: what came last may be missing
)

// Stream identifies one of a process's outputs.
type Stream int

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Frame is one piece of a process's output.
type Frame struct {
	Seq    int64 // 1, 2, 3 … over both streams; a cursor for followers
	Stream Stream
	At     time.Time // when it was read from the program
	Data   []byte    // the receiver's to keep
}

// InputTaken is how far a process has taken its input.
type InputTaken struct {
	Bytes  int   // of the piece; fewer than all where it did not read
	Total  int64 // of the whole input
	Closed bool  // its input is at its end
}
