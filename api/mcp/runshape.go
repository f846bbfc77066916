// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// runAnswer is the structured answer of run_sandbox.
type runAnswer struct {
	Tool        string `json:"tool"`
	RunID       string `json:"run_id"`
	Identifier  string `json:"identifier"`
	SandboxName string `json:"sandbox_name"`
	Final       *run   `json:"final"`
}

// run is a finished run. Variables are not in it: they may be secrets.
type run struct {
	RunID       string        `json:"run_id"`
	Identifier  string        `json:"identifier"`
	State       string        `json:"state"` // completed, failed
	CreatedAt   time.Time     `json:"created_at"`
	StartedAt   time.Time     `json:"started_at"`
	EndedAt     time.Time     `json:"ended_at"`
	SandboxID   string        `json:"sandbox_container_id"`
	SandboxName string        `json:"sandbox_name"`
	Commands    []*runElement `json:"commands"`
	Error       string        `json:"error,omitempty"`

	shown []*ended // by command, nil where it did not run
}

// runElement is one command of a run.
type runElement struct {
	Index           int        `json:"index"`
	Shell           string     `json:"shell,omitempty"`
	Argv            []string   `json:"argv,omitempty"`
	Cwd             string     `json:"cwd"`
	Status          string     `json:"status"` // queued (it was not reached), completed, failed, timed_out
	ExitCode        *int       `json:"exit_code,omitempty"`
	Cause           string     `json:"cause,omitempty"`
	Error           string     `json:"error,omitempty"`
	StartedAt       *time.Time `json:"started_at,omitempty"`
	EndedAt         *time.Time `json:"ended_at,omitempty"`
	StdoutBytes     int64      `json:"stdout_bytes"`
	StderrBytes     int64      `json:"stderr_bytes"`
	StdoutTruncated bool       `json:"stdout_truncated"`
	StderrTruncated bool       `json:"stderr_truncated"`
	Stdout          string     `json:"stdout"`
	Stderr          string     `json:"stderr"`
}

func newRun(r *runArgs, s *sandbox.Sandbox, created, started time.Time) *run {
	out := &run{
		RunID: newRunID(), Identifier: r.identifier, CreatedAt: created.UTC(), StartedAt: started.UTC(),
		SandboxID: string(s.ID), SandboxName: s.Ref(), shown: make([]*ended, len(r.commands)),
	}
	for i, c := range r.commands {
		out.Commands = append(out.Commands, &runElement{Index: i, Shell: c.shell, Argv: c.argv, Cwd: c.cwd, Status: "queued"})
	}
	return out
}

// newRunID makes a random UUID (version 4), which is what clients of this tool expect.
func newRunID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ended takes what became of a command, or why it could not begin.
func (r *run) ended(i int, e *ended, err error, began time.Time) {
	el := r.Commands[i]
	el.StartedAt, el.EndedAt = new(began.UTC()), new(time.Now().UTC())
	if err != nil {
		el.Status, el.Error = "failed", fault.As(err).Message
		return
	}
	r.shown[i] = e
	el.ExitCode, el.Cause = new(e.ExitCode), string(e.Cause)
	el.Stdout, el.Stderr = e.stdout.text, e.stderr.text
	el.StdoutBytes, el.StderrBytes = e.StdoutBytes, e.StderrBytes
	el.StdoutTruncated, el.StderrTruncated = !e.stdout.whole() || e.StdoutTruncated, !e.stderr.whole() || e.StderrTruncated
	switch {
	case e.Cause == sandbox.CauseTimeout:
		el.Status = "timed_out"
	case e.ExitCode != 0:
		el.Status = "failed"
	default:
		el.Status = "completed"
	}
}

func (r *run) fail(i int) {
	el := r.Commands[i]
	what := el.Error
	if what == "" {
		what = r.shown[i].verdict()
	}
	r.Error = fmt.Sprintf("command %d: %s", i, what)
}

func (r *run) finish(failed bool) {
	r.State = "completed"
	if failed {
		r.State = "failed"
	}
	r.EndedAt = time.Now().UTC()
}

func (r *run) answer() *answer {
	done, short := 0, false
	a := &answer{structured: runAnswer{"run_sandbox", r.RunID, r.Identifier, r.SandboxName, r}}
	for i, el := range r.Commands {
		line := fmt.Sprintf("[%d] %s", i, el.Status)
		if e := r.shown[i]; e != nil {
			line += ": " + e.verdict()
			short = short || !e.whole()
			done++
			for _, s := range e.sections(fmt.Sprintf("[%d] ", i)) {
				if s.body != "" {
					a.sections = append(a.sections, s)
				}
			}
		} else if el.Error != "" {
			line += ": " + el.Error
		}
		a.lines = append(a.lines, line+" · "+oneLine(el))
	}
	a.verdict = fmt.Sprintf("run %s: %d of %d commands ran in %s · sandbox %s · run %s",
		r.State, done, len(r.Commands), took(r.EndedAt.Sub(r.StartedAt)), r.SandboxName, r.RunID)
	if r.Error != "" {
		a.lines = append(a.lines, "cause: "+r.Error)
	}
	if short {
		a.notes = append(a.notes, "output was shortened; write it to a file with > out.log 2>&1 and use read_file to see all of it")
	}
	return a
}

// oneLine shows a command's beginning.
func oneLine(el *runElement) string {
	s := el.Shell
	if s == "" {
		s = strings.Join(el.Argv, " ")
	}
	return sandbox.Clip(strings.Join(strings.Fields(s), " "), maxShown)
}
