// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/agent"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of the output in an answer, in characters, and of what is followed of
// a stream, in bytes: after that a program's end is not seen.
const (
	defaultOutput = 16_000
	leastOutput   = 500
	mostOutput    = 200_000
	followed      = 64 << 20
)

// How long a call waits, which is less than any client does, and how long a
// command may take that says nothing of it.
const (
	defaultWait    = 45 * time.Second
	mostWait       = 55 * time.Second
	defaultTimeout = 10 * time.Minute
)

func runCommand() tool {
	return tool{
		name: "run_command", title: "Run a command", destructive: true,
		openWorld: true,
		about: "Run a shell command (bash) in a sandbox. Returns exit code, duration, changed files, stdout and stderr. " +
			"Files stay between calls; the working directory and shell variables do not: pass cwd and env, or use cd x && y. " +
			"A command that takes longer than wait_seconds goes on as a process, and the answer says how to read on. " +
			"Start servers with background. A command that fails is a normal result.",
		params: []param{
			{name: "command", kind: text, required: true, about: "Shell text.", aliases: []string{"cmd", "script", "shell", "code"}},
			paramSandbox(),
			{name: "cwd", kind: text, about: "Default /workspace, as root /root.", aliases: []string{"workdir", "working_directory", "working_dir", "dir"}},
			{name: "env", kind: texts, about: "Variables of this command.", aliases: []string{"env_vars", "environment"}},
			{name: "stdin", kind: text, about: "Its standard input.", aliases: []string{"input"}},
			paramWait(mostWait.Seconds(), "Wait so long for its end, 0 to 55. Default 45; with background 1."),
			{name: "timeout_seconds", kind: number, min: 0.1, max: engine.MaxCommandTimeout.Seconds(), about: "Kill it and all it started after this. Default 600; with background none.", aliases: []string{"timeout"}},
			{name: "background", kind: boolean, about: "Start it and do not wait; it outlives the call, and write_process reaches its input.", aliases: []string{"detach", "run_in_background"}},
			{name: "as_user", kind: text, enum: []string{"sandbox", "root"}, about: "root may install packages.", aliases: []string{"user"}},
			paramOutput(),
		},
		example: `{"command": "python3 -c 'print(6*7)'"}`,
		run:     runOne,
	}
}

func runOne(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	r := engine.ExecRequest{
		Cwd: a.text("cwd"), Env: a.env("env"), Stdin: []byte(a.text("stdin")), User: a.text("as_user"),
		Timeout: seconds(a.number("timeout_seconds", 0)),
	}
	background := a.bool("background", false)
	r.Wait = seconds(a.number("wait_seconds", map[bool]float64{false: defaultWait.Seconds(), true: 1}[background]))
	if json.Unmarshal(a.values["command"], &r.Argv) != nil { // a list is a program with its arguments
		r.Shell = a.text("command")
	}
	limit := int(a.number("max_output_chars", defaultOutput))
	if !c.has(GroupProcess) { // nobody could read on
		if background {
			a.add("background", "is not possible here: the tools for processes are switched off")
		}
		r.Wait = 0
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, true)
	if err != nil {
		return nil, err
	}
	if background {
		return c.inBackground(ctx, ref, r, limit)
	}
	if r.Timeout == 0 {
		r.Timeout = min(defaultTimeout, c.engine.MostCommandTime())
	}
	if r.Wait == 0 && c.has(GroupProcess) {
		r.Wait = time.Millisecond // zero is for ever
	}
	if c.Task != nil && !a.has("wait_seconds") {
		r.Wait = 0 // whoever asked gets a task meanwhile
	}
	r.TellArtifacts = true
	if c.Task != nil {
		if s, err := c.engine.Get(ctx, c.Caller, ref); err == nil {
			r.Started = func(process string) { c.Task.StandFor(taskOfCommand + string(s.ID) + "-" + process) }
		}
	}
	began := time.Now()
	done, err := c.exec(ctx, ref, r, limit)
	if err != nil {
		return nil, err
	}
	return c.commandAnswer(ctx, ref, r.Cwd, done, began), nil
}

// commandAnswer shows a command that was waited for.
func (c *call) commandAnswer(ctx context.Context, ref, cwd string, done *ended, began time.Time) *answer {
	out := &answer{verdict: done.verdict()}
	if done.Running {
		out.verdict = "still running after " + took(time.Since(began)) + ": process " + done.ProcessID
		out.lines = append(out.lines, "next: "+nextRead(ref, done.ProcessID, done.cursor)+", or stop_process")
	}
	out.verdict += " · in " + printablePath(absolute(cwd)) + " · sandbox " + ref
	if !done.whole() {
		out.verdict += " · output shortened"
	}
	out.lines = append(out.lines, done.reasons(ctx, c)...)
	out.lines = append(out.lines, c.blocked(ctx, ref, done, began)...)
	if !done.Running {
		out.lines = append(out.lines, changed(done.Changes, done.ChangesTotal, done.ChangesComplete)...)
		if !done.NoArtifacts {
			c.addMade(ctx, out, ref, began)
		}
	}
	out.notes = append(out.notes, c.shortened(ctx, ref, done)...)
	out.sections = done.sections("")
	return out
}

// inBackground starts a command that nobody waits for, and looks at how it begins.
func (c *call) inBackground(ctx context.Context, ref string, r engine.ExecRequest, limit int) (*answer, error) {
	rec, err := c.engine.StartProcess(ctx, c.Caller, ref, engine.StartRequest{
		Shell: r.Shell, Argv: r.Argv, Cwd: r.Cwd, Env: r.Env, User: r.User, Timeout: r.Timeout,
		Stdin: r.Stdin, StreamStdin: len(r.Stdin) == 0,
	})
	if err != nil {
		return nil, err
	}
	seen, err := c.watch(ctx, ref, rec.ID, watch{wait: r.Wait})
	if err != nil {
		return nil, fault.Wrap(fault.Of(err), err, "process %s was started and goes on, but its output cannot be read: %s", rec.ID, fault.As(err).Message).
			WithRemedy("call %s", nextRead(ref, rec.ID, 0))
	}
	out := seen.answer(ctx, c, ref, limit)
	if seen.Result == nil {
		out.verdict = "started in the background: " + out.verdict
		out.lines = append(out.lines, "stop_process ends it; expose_port gives a link to what it serves")
	}
	return out, nil
}

// ended is a command with its output, shortened.
type ended struct {
	engine.ExecResult
	stdout, stderr   excerpt
	seenOut, seenErr int64 // bytes
	cursor           int64 // of the last output that was seen
}

// exec runs a command to its end, and shows its output as progress. Whoever
// cancels the call kills the command; a server that stops does not.
func (c *call) exec(ctx context.Context, ref string, r engine.ExecRequest, limit int) (*ended, error) {
	r.MaxStdout, r.MaxStderr = followed, followed
	var stdout, stderr capture
	e := &ended{}
	res, err := c.engine.Exec(ctx, c.Caller, ref, r, func(f agent.Frame) error {
		e.cursor = f.Seq
		if f.Stream == agent.Stderr {
			stderr.add(f.Data)
		} else {
			stdout.add(f.Data)
		}
		c.progress.wrote(f.Data)
		return nil
	})
	if err != nil {
		return nil, c.abandon(ctx, ref, res.ProcessID, err)
	}
	e.ExecResult = res
	e.show(&stdout, &stderr, limit)
	return e, nil
}

// abandon decides what becomes of a command that nobody follows any more, and
// gives the error that says so.
func (c *call) abandon(ctx context.Context, ref, process string, err error) error {
	if ctx.Err() == nil || process == "" {
		return err
	}
	if errors.Is(context.Cause(ctx), transport.ErrStopping) {
		return fault.Wrap(fault.Unavailable, err, "the server is stopping; the command goes on (process %s)", process).
			WithRemedy("look for what it wrote when the server is back")
	}
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), killBound)
	defer cancel()
	if kerr := c.engine.KillProcess(kill, c.Caller, ref, process); kerr != nil && !fault.Is(kerr, fault.NotFound) {
		c.log.WarnContext(ctx, "the command of a cancelled call was not killed", "sandbox", ref, "process", process, "error", kerr)
	}
	return err
}

// killBound bounds the kill of a command, which nobody waits for.
const killBound = 30 * time.Second

func runes(s string) int { return utf8.RuneCountInString(s) }

func gapped(c *capture, head, tail string) int {
	n := runes(head) + runes(tail)
	if c.bytes > 0 {
		n += mostOutput
	}
	return n
}

func (e *ended) whole() bool { return e.stdout.whole() && e.stderr.whole() }

// verdict says in a few words how it ended.
func (e *ended) verdict() string {
	how := "exit " + strconv.Itoa(e.ExitCode)
	switch {
	case e.Cause != sandbox.CauseNone:
		how += " (" + causeText(e.Cause) + ")"
	case e.Signal != "":
		how += " (" + e.Signal + ")"
	}
	return how + " after " + took(e.Duration)
}

func causeText(c sandbox.Cause) string {
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

// reasons says more of a command that a limit ended, and what helps.
func (e *ended) reasons(ctx context.Context, c *call) []string {
	var out []string
	if e.CauseDetail != "" {
		out = append(out, "cause: "+e.CauseDetail)
	}
	var l sandbox.Limits
	switch e.Cause {
	case sandbox.CauseOOM, sandbox.CausePids, sandbox.CauseDisk:
		s, err := c.engine.Get(ctx, c.Caller, c.ref)
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
func (c *call) larger(limit string) string {
	if c.has(GroupManage) && c.ownTools() {
		return fmt.Sprintf(`update_sandbox with {"sandbox": %s, "%s": …} and a larger number`, quote(c.ref), limit)
	}
	return "create another one with a larger " + limit
}

// sections are the streams that are not empty; prefix stands before their names.
func (e *ended) sections(prefix string) []section {
	var out []section
	for _, s := range []struct {
		name string
		x    *excerpt
		n    int64
		cut  bool
	}{{"stdout", &e.stdout, e.seenOut, e.StdoutTruncated}, {"stderr", &e.stderr, e.seenErr, e.StderrTruncated}} {
		if strings.TrimSpace(s.x.text) == "" && s.n == 0 {
			continue
		}
		title := fmt.Sprintf("%s%s (%d bytes)", prefix, s.name, s.n)
		if s.cut {
			title += fmt.Sprintf(", seen to its first %d MiB only", followed>>20)
		}
		out = append(out, section{title, s.x.text})
	}
	if out == nil {
		out = []section{{prefix + "no output", ""}}
	}
	return out
}
