// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strings"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Exit codes of commands that have none of their own.
const (
	ExitKilled     = 128 + 9 // SIGKILL ended it
	exitNotStarted = 127     // it never began, as a shell has it
)

// What the rows of commands and cells say that never began.
const (
	NotStarted   = "not started: "
	notRun       = "not run: "
	UnknownStart = "not known to have started: "
	NeverHeardOf = "the server ended before it was begun, or its record is lost" // an agent that has been up all the time
)

// CutOff completes the row of a command that was killed, and whose result is not known.
func CutOff(ev *sandbox.Event, cause sandbox.Cause, detail string, at time.Time) {
	ev.Done, ev.OK = true, false
	ev.ExitCode, ev.Signal, ev.Cause, ev.Detail = ExitKilled, "SIGKILL", cause, detail
	ev.Duration = max(at.Sub(ev.At), 0)
	ev.Signaled = signaled(ev.Signal, cause, ev.Signaled)
}

// NotBegun completes the row of a command that could not be started, for err: why is NotStarted
// or UnknownStart.
func NotBegun(ev *sandbox.Event, why string, err error, at time.Time) {
	CutOff(ev, sandbox.CauseNone, why+sandbox.Clip(fault.As(err).Message, sandbox.MaxEventDetail), at)
	ev.ExitCode, ev.Signal = exitNotStarted, ""
}

// NotRun completes the row of a command that never had its turn, for err.
func NotRun(ev *sandbox.Event, err error, at time.Time) { NotBegun(ev, notRun, err, at) }

// NeverBegan reports whether a row is of a command that is known never to have begun.
func NeverBegan(ev *sandbox.Event) bool {
	switch {
	case !ev.Done:
		return false
	case ev.Cause == sandbox.CauseHost:
		return ev.Detail == NeverHeardOf
	}
	return ev.ExitCode == exitNotStarted && ev.Cause == sandbox.CauseNone &&
		(strings.HasPrefix(ev.Detail, NotStarted) || strings.HasPrefix(ev.Detail, notRun))
}

// Close completes the row of a command by its result.
func Close(ev *sandbox.Event, r *sandbox.Result) {
	ev.Done, ev.OK = true, r.ExitCode == 0
	ev.ExitCode, ev.Signal, ev.Cause, ev.Detail = r.ExitCode, r.Signal, r.Cause, sandbox.Clip(r.CauseDetail, sandbox.MaxEventDetail)
	if ev.Duration = r.Duration; r.Signaled != (sandbox.Signaled{}) {
		ev.Signaled = r.Signaled
	}
	ev.Signaled = signaled(r.Signal, r.Cause, ev.Signaled)
	ev.StdoutBytes, ev.StderrBytes = r.StdoutBytes, r.StderrBytes
	ev.StdoutTruncated, ev.StderrTruncated = r.StdoutTruncated, r.StderrTruncated
	ev.Stdout, ev.Stderr = r.Stdout, r.Stderr
}

// CommandLine returns a command as a person would type it.
func CommandLine(cmd agent.Command) string {
	if cmd.Shell != "" {
		return cmd.Shell
	}
	var b strings.Builder
	for i, a := range cmd.Argv {
		if b.Len() > sandbox.MaxEventCommand {
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		if a != "" && !strings.ContainsFunc(a, unsafeInShell) {
			b.WriteString(a)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(a, "'", `'\''`) + "'")
	}
	return b.String()
}

func unsafeInShell(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r >= 0x80:
		return false
	}
	return !strings.ContainsRune("-_./=:,@%+", r)
}
