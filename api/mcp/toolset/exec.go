// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of the output in an answer, in characters, and of what is followed of
// a stream, in bytes: after that a program's end is not seen.
const (
	DefaultOutput = 16_000
	LeastOutput   = 500
	MostOutput    = 200_000
	followed      = 64 << 20
)

// How long a call waits, which is less than any client does, and how long a
// command may take that says nothing of it.
const (
	DefaultWait    = 45 * time.Second
	MostWait       = 55 * time.Second
	DefaultTimeout = 10 * time.Minute
)

// Outcome is a command with its output, shortened.
type Outcome struct {
	engine.ExecResult
	Stdout, Stderr   excerpt
	seenOut, seenErr int64 // bytes
	Cursor           int64 // of the last output that was seen
}

// Exec runs a command to its end, and shows its output as progress. Whoever
// cancels the call kills the command; a server that stops does not.
func (c *Call) Exec(ctx context.Context, ref string, r engine.ExecRequest, limit int) (*Outcome, error) {
	r.MaxStdout, r.MaxStderr = followed, followed
	var stdout, stderr Capture
	e := &Outcome{}
	res, err := c.Commands.Exec(ctx, c.Caller, ref, r, func(f sandbox.Frame) error {
		e.Cursor = f.Seq
		if f.Stream == sandbox.Stderr {
			stderr.Add(f.Data)
		} else {
			stdout.Add(f.Data)
		}
		c.Progress.Wrote(f.Data)
		return nil
	})
	if err != nil {
		return nil, c.abandon(ctx, ref, res.ProcessID, err)
	}
	e.ExecResult = res
	e.Show(&stdout, &stderr, limit)
	return e, nil
}

// abandon decides what becomes of a command that nobody follows any more, and
// gives the error that says so.
func (c *Call) abandon(ctx context.Context, ref, process string, err error) error {
	if ctx.Err() == nil || process == "" {
		return err
	}
	if errors.Is(context.Cause(ctx), transport.ErrStopping) {
		return fault.Wrap(fault.Unavailable, err, "the server is stopping; the command goes on (process %s)", process).
			WithRemedy("look for what it wrote when the server is back")
	}
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), KillBound)
	defer cancel()
	if kerr := c.Processes.KillProcess(kill, c.Caller, ref, process); kerr != nil && !fault.Is(kerr, fault.NotFound) {
		c.Log.WarnContext(ctx, "the command of a cancelled call was not killed", "sandbox", ref, "process", process, "error", kerr)
	}
	return err
}

// KillBound bounds the kill of a command, which nobody waits for.
const KillBound = 30 * time.Second

// Runes counts characters.
func Runes(s string) int { return utf8.RuneCountInString(s) }

func gapped(c *Capture, head, tail string) int {
	n := Runes(head) + Runes(tail)
	if c.Bytes > 0 {
		n += MostOutput
	}
	return n
}

// Whole reports whether all of the output is there.
func (e *Outcome) Whole() bool { return e.Stdout.Whole() && e.Stderr.Whole() }

// Verdict says in a few words how it ended.
func (e *Outcome) Verdict() string {
	how := "exit " + strconv.Itoa(e.ExitCode)
	switch {
	case e.Cause != sandbox.CauseNone:
		how += " (" + CauseText(e.Cause) + ")"
	case e.Signal != "":
		how += " (" + e.Signal + ")"
	}
	return how + " after " + Took(e.Duration)
}

// CauseText shows why a command ended that did not end by itself.
func CauseText(c sandbox.Cause) string {
	switch c {
	case sandbox.CauseTimeout:
		return "killed: its timeout passed"
	case sandbox.CauseOOM:
		return "killed: out of memory"
	case sandbox.CausePids:
		return "failed: too many processes"
	case sandbox.CauseDisk:
		return "failed: the disk is full"
	case sandbox.CauseKilled:
		return "killed"
	case sandbox.CauseStopped:
		return "killed: its sandbox was stopped"
	case sandbox.CauseHost:
		return "killed: its sandbox went down"
	}
	return string(c)
}

// SignaledText says who sent a command which signal; nothing where that was nobody, or the server.
func SignaledText(s sandbox.Signaled) string {
	if s.By == "" || s.By == sandbox.System {
		return ""
	}
	return s.With + " by " + s.By
}

// Reasons says more of a command that a limit ended, and what helps.
func (e *Outcome) Reasons(ctx context.Context, c *Call) []string {
	var out []string
	if e.CauseDetail != "" {
		out = append(out, "cause: "+e.CauseDetail)
	}
	if by := SignaledText(e.Signaled); by != "" {
		out = append(out, "signal: "+by)
	}
	var l sandbox.Limits
	switch e.Cause {
	case sandbox.CauseOOM, sandbox.CausePids, sandbox.CauseDisk:
		s, err := c.Sandboxes.Get(ctx, c.Caller, c.Ref)
		if err != nil {
			return out
		}
		l = s.Limits
	}
	switch e.Cause {
	case sandbox.CauseTimeout:
		out = append(out, "next: raise timeout_seconds, or start it with {\"background\": true} and follow it with read_process")
	case sandbox.CauseOOM:
		out = append(out, fmt.Sprintf("next: its memory peaked at the limit of %d MiB; use less, or %s", l.MemoryMB, c.larger("memory_mb")))
	case sandbox.CausePids:
		out = append(out, fmt.Sprintf("next: the sandbox may have %d processes and threads; start fewer, or end some that run", l.Pids))
	case sandbox.CauseDisk:
		out = append(out, fmt.Sprintf("next: the sandbox has %d MiB of disk; delete files, or %s", l.DiskMB, c.larger("disk_mb")))
	}
	return out
}

// larger says how to have more of a limit.
func (c *Call) larger(limit string) string {
	if c.Has(GroupManage) && c.OwnTools() {
		return fmt.Sprintf(`update_sandbox with {"sandbox": %s, "%s": …} and a larger number`, Quote(c.Ref), limit)
	}
	return "create another one with a larger " + limit
}

// Sections are the streams that are not empty; prefix stands before their names.
func (e *Outcome) Sections(prefix string) []Section {
	var out []Section
	for _, s := range []struct {
		name string
		x    *excerpt
		n    int64
		cut  bool
	}{{"stdout", &e.Stdout, e.seenOut, e.StdoutTruncated}, {"stderr", &e.Stderr, e.seenErr, e.StderrTruncated}} {
		if strings.TrimSpace(s.x.Text) == "" && s.n == 0 {
			continue
		}
		title := fmt.Sprintf("%s%s (%d bytes)", prefix, s.name, s.n)
		if s.cut {
			title += fmt.Sprintf(", seen to its first %d MiB only", followed>>20)
		}
		out = append(out, Section{Title: title, Body: s.x.Text})
	}
	if out == nil {
		out = []Section{{Title: prefix + "no output", Body: ""}}
	}
	return out
}
