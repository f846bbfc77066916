// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"crypto/rand"
	"fmt"
	"time"
)

// RunState is the state of a run.
type RunState string

// The states of runs. The last three are final.
const (
	RunQueued    RunState = "queued" // it waits for its turn, or for its sandbox
	RunRunning   RunState = "running"
	RunCompleted RunState = "completed"
	RunFailed    RunState = "failed"
	RunCanceled  RunState = "canceled"
)

// Ended reports whether the run is in a final state.
func (s RunState) Ended() bool { return s == RunCompleted || s == RunFailed || s == RunCanceled }

// Run is a batch of commands that run one after the other in one sandbox, independent of its
// client's connection.
type Run struct {
	ID         string // a random UUID
	Number     int64  // in the order in which runs were asked for
	Project    string
	Sandbox    ID     // empty until it is there
	Identifier string // the sandbox's key, or its id, as the caller named it
	State      RunState
	Actor      string // who asked, as in an event
	Via        string

	User     string        // of all commands
	TTL      time.Duration // the sandbox is deleted when unused for so long; zero: as it is
	GoOn     bool          // with the next command after a failure
	Locked   bool          // it waits for earlier locked runs of the same sandbox
	Canceled bool          // it was asked to end

	Error     string // why it failed
	CreatedAt time.Time
	StartedAt time.Time // when its sandbox was ready
	EndedAt   time.Time
	DroppedAt time.Time // when its sandbox was deleted by a caller: it is about to be collected

	Commands    []RunCommand
	OutputBytes int64 // of all of them, that are in the run's events

	Artifacts      []Artifact
	ArtifactBytes  int64  // of all of them
	ArtifactsKept  bool   // they were copied out, and are there
	ArtifactsError string // why not
}

// CommandStatus is the state of a command of a run.
type CommandStatus string

// The states of commands.
const (
	CommandQueued    CommandStatus = "queued" // also of one that was not reached
	CommandRunning   CommandStatus = "running"
	CommandCompleted CommandStatus = "completed"
	CommandFailed    CommandStatus = "failed"
	CommandTimedOut  CommandStatus = "timed_out"
)

// RunCommand is one command of a run. Its output is in the run's events.
type RunCommand struct {
	Shell        string   // run by a shell; or
	Argv         []string // a program and its arguments
	Cwd          string
	Env          map[string]string // values are emptied when the run has ended: they may be secrets
	Timeout      time.Duration
	AllowFailure bool

	Status    CommandStatus
	ProcessID string // of the one process that it was; a command is never begun twice
	Frame     int64  // the last one of its log that is in the run's events
	Error     string // why it could not begin
	ExitCode  int
	Signal    string
	Cause     Cause
	StartedAt time.Time
	EndedAt   time.Time

	StdoutBytes     int64 // that it wrote
	StderrBytes     int64
	StdoutTruncated bool // not all of it was kept
	StderrTruncated bool
}

// Artifact is a file that was copied out of a sandbox after a run.
type Artifact struct {
	Path   string // below the artifacts' directory, with slashes; valid UTF-8
	Size   int64
	SHA256 string // of its content, in hexadecimal
}

// Artifacts is the directory, inside, whose files are copied out after a run.
const Artifacts = "/artifacts"

// RunEventType is what happened in a run.
type RunEventType string

// The types of a run's events, in the order in which they happen.
const (
	RunStarted         RunEventType = "run_started"
	RunCommandStarted  RunEventType = "command_started"
	RunCommandStdout   RunEventType = "command_stdout"
	RunCommandStderr   RunEventType = "command_stderr"
	RunCommandFinished RunEventType = "command_finished"
	RunExtracted       RunEventType = "artifacts_extracted"
	RunFinished        RunEventType = "run_finished" // the last of one that worked
	RunFailedEvent     RunEventType = "run_failed"   // the last of any other
)

// RunEvent is one thing that happened in a run.
type RunEvent struct {
	Seq       int64 // from 1 on in each run, without gaps
	Type      RunEventType
	At        time.Time
	Command   int    // which; of those of commands
	Truncated bool   // of output: more was written than is kept, and this is the last of it
	Data      []byte // of output: what was written
}

// NewRunID makes a random UUID (version 4).
func NewRunID() string { return NewUUID() }

// NewUUID makes a random UUID (version 4).
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ValidRunID reports whether s has the form of a run's id. Only that is ever part of
// a path on the host.
func ValidRunID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

// Failed reports whether the command has ended in a way that fails its run.
func (c *RunCommand) Failed() bool {
	return (c.Status == CommandFailed || c.Status == CommandTimedOut) && !c.AllowFailure
}
