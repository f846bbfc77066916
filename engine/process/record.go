// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package process is what is on record of the processes of sandboxes: their rows, which are
// events; their records, made of rows, of the logs on disk, or of what an agent told; and pages of
// them. It asks nothing that runs, and knows no verb.
package process

import (
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Record returns what the event of a command tells of it, as its record.
func Record(ev *sandbox.Event) sandbox.Process {
	rec := sandbox.Process{
		ID: ev.ProcessID, Name: ev.Name, Labels: ev.Labels, State: sandbox.ProcessRunning, Shell: ev.Command, Cwd: ev.Cwd, User: ev.User,
		Terminal: ev.Type == sandbox.EventTerminal, StartedAt: ev.At,
		Clipped: len(ev.Command) >= sandbox.MaxEventCommand-len("…"),
	}
	if ev.Done {
		rec.State = sandbox.ProcessExited
		rec.Result = &sandbox.Result{
			ExitCode: ev.ExitCode, Signal: ev.Signal, Cause: ev.Cause, CauseDetail: ev.Detail, Signaled: ev.Signaled,
			Duration: ev.Duration, EndedAt: ev.At.Add(ev.Duration).Round(time.Microsecond),
			StdoutBytes: ev.StdoutBytes, StderrBytes: ev.StderrBytes,
			StdoutTruncated: ev.StdoutTruncated, StderrTruncated: ev.StderrTruncated,
		}
	}
	return rec
}

// Unseen returns what is known of a command of which nobody has seen anything.
func Unseen(ev *sandbox.Event, at time.Time) sandbox.Process {
	return sandbox.Process{ID: ev.ProcessID, StartedAt: ev.At, Result: &sandbox.Result{Duration: max(at.Sub(ev.At), 0), EndedAt: at}}
}

// Ended returns how a process ended whose sandbox is down, for a cause. If its log has its end,
// that is it. Else it was killed, and what the log holds is what is known of its output.
func Ended(inst runtime.Instance, processID string, seen sandbox.Process, cause sandbox.Cause, detail string) sandbox.Process {
	rec, err := readLog(inst, processID)
	if err != nil {
		rec = seen
		rec.Result.StdoutTruncated, rec.Result.StderrTruncated = true, true
		rec.Result.StdoutCut, rec.Result.StderrCut = sandbox.CutAgent, sandbox.CutAgent
	} else if rec.Result.StdoutCut != sandbox.CutAgent {
		if rec.Result.Cause == sandbox.CauseStopped && cause != sandbox.CauseStopped { // all that its agent knew
			rec.Result.Cause, rec.Result.CauseDetail = cause, detail
		}
		return rec
	}
	rec.State = sandbox.ProcessExited
	rec.Result.Duration, rec.Result.EndedAt = seen.Result.Duration, seen.Result.EndedAt
	rec.Result.ExitCode, rec.Result.Signal, rec.Result.Cause, rec.Result.CauseDetail = ExitKilled, "SIGKILL", cause, detail
	return rec
}

// readLog reads what is on disk of a process; fault.NotFound where nothing is, or the
// runtime cannot tell.
func readLog(inst runtime.Instance, processID string) (sandbox.Process, error) {
	k, ok := inst.(runtime.LogKeeper)
	if !ok {
		return sandbox.Process{}, fault.New(fault.NotFound, "the runtime keeps no logs that the host can read")
	}
	dir, err := k.Logs()
	if err != nil {
		return sandbox.Process{}, err
	}
	defer dir.Close()
	return agent.ReadLog(dir, processID)
}
