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

func runCommand() tool {
	return tool{
		name: "run_command", title: "Run a command", destructive: true,
		about: "Run a shell command (bash) in a sandbox and wait until it ends. Returns exit code, duration, changed files, stdout and stderr. " +
			"Files stay between calls; the working directory and shell variables do not: pass cwd and env, or use cd x && y. " +
			"Long output is cut in the middle. For servers and work of more than a minute, start it in the background with its output in a file " +
			"(cmd > out.log 2>&1 &) and read that file later. A command that fails is a normal result.",
		params: []param{
			{name: "command", kind: text, required: true, about: "Shell text to run.", aliases: []string{"cmd", "script", "shell", "code"}},
			paramSandbox(),
			{name: "cwd", kind: text, about: "Working directory, default /workspace.", aliases: []string{"workdir", "working_directory", "working_dir", "dir"}},
			{name: "env", kind: texts, about: "Environment variables of this command.", aliases: []string{"env_vars", "environment"}},
			{name: "stdin", kind: text, about: "Text given to the command's standard input.", aliases: []string{"input"}},
			{name: "timeout_seconds", kind: number, min: 0.1, max: engine.MaxCommandTimeout.Seconds(), about: "Kill the command and all it started after this, default 300.", aliases: []string{"timeout"}},
			{name: "as_user", kind: text, enum: []string{"sandbox", "root"}, about: "root may install packages; default sandbox.", aliases: []string{"user"}},
			{name: "max_output_chars", kind: integer, min: leastOutput, max: mostOutput, about: "Most characters of output to return, default 16000.", aliases: []string{"max_output"}},
		},
		example: `{"command": "python3 -c 'print(6*7)'"}`,
		run:     runOne,
	}
}

func runOne(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	r := engine.ExecRequest{
		Cwd: a.text("cwd"), Env: a.env("env"), Stdin: []byte(a.text("stdin")), User: a.text("as_user"),
		Timeout: time.Duration(a.number("timeout_seconds", 0) * float64(time.Second)),
	}
	if json.Unmarshal(a.values["command"], &r.Argv) != nil { // a list is a program with its arguments
		r.Shell = a.text("command")
	}
	limit := int(a.number("max_output_chars", defaultOutput))
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, true)
	if err != nil {
		return nil, err
	}
	done, err := c.exec(ctx, ref, r, limit)
	if err != nil {
		return nil, err
	}
	out := &answer{verdict: done.verdict() + " · sandbox " + ref}
	out.lines = append(done.reasons(ctx, c), changed(done.Changes, done.ChangesTotal, done.ChangesComplete)...)
	if !done.whole() {
		out.notes = append(out.notes, fmt.Sprintf("the output was shortened to %d characters; to see all of it, run the command again with > out.log 2>&1 and use read_file, or raise max_output_chars (at most %d)", limit, mostOutput))
	}
	out.sections = done.sections("")
	return out, nil
}

// ended is a command with its output, shortened.
type ended struct {
	engine.ExecResult
	stdout, stderr excerpt
}

// exec runs a command to its end, and shows its output as progress. Whoever
// cancels the call kills the command; a server that stops does not.
func (c *call) exec(ctx context.Context, ref string, r engine.ExecRequest, limit int) (*ended, error) {
	r.MaxStdout, r.MaxStderr = followed, followed
	var stdout, stderr capture
	res, err := c.engine.Exec(ctx, c.caller, ref, r, func(f agent.Frame) error {
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
	e := &ended{ExecResult: res}
	oh, ot := stdout.texts()
	eh, et := stderr.texts()
	forOut, forErr := share(limit, runes(oh)+runes(ot), runes(eh)+runes(et))
	if stdout.bytes > 0 || stderr.bytes > 0 { // a stream with a gap takes what it gets
		forOut, forErr = share(limit, gapped(&stdout, oh, ot), gapped(&stderr, eh, et))
	}
	e.stdout = cut(oh, ot, stdout.bytes, stdout.lines, forOut)
	e.stderr = cut(eh, et, stderr.bytes, stderr.lines, forErr)
	return e, nil
}

// abandon decides what becomes of a command that nobody follows any more, and
// gives the error that says so.
func (c *call) abandon(ctx context.Context, ref, process string, err error) error {
	if ctx.Err() == nil || process == "" {
		return err
	}
	if errors.Is(context.Cause(ctx), errStopping) {
		return fault.Wrap(fault.Unavailable, err, "the server is stopping; the command goes on (process %s)", process).
			WithRemedy("look for what it wrote when the server is back")
	}
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), killBound)
	defer cancel()
	if kerr := c.engine.KillProcess(kill, c.caller, ref, process); kerr != nil && !fault.Is(kerr, fault.NotFound) {
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
		s, err := c.engine.Get(ctx, c.caller, c.ref)
		if err != nil {
			return out
		}
		l = s.Limits
	}
	switch e.Cause {
	case sandbox.CauseTimeout:
		out = append(out, "next: raise timeout_seconds, or start it in the background with its output in a file")
	case sandbox.CauseOOM:
		out = append(out, fmt.Sprintf("next: the sandbox has %d MiB; use less, or create another one with a larger memory_mb", l.MemoryMB))
	case sandbox.CausePids:
		out = append(out, fmt.Sprintf("next: the sandbox may have %d processes and threads; start fewer, or end some that run", l.Pids))
	case sandbox.CauseDisk:
		out = append(out, fmt.Sprintf("next: the sandbox has %d MiB of disk; delete files, or create another one with a larger disk_mb", l.DiskMB))
	}
	return out
}

// sections are the streams that are not empty; prefix stands before their names.
func (e *ended) sections(prefix string) []section {
	var out []section
	for _, s := range []struct {
		name string
		x    *excerpt
		n    int64
		cut  bool
	}{{"stdout", &e.stdout, e.StdoutBytes, e.StdoutTruncated}, {"stderr", &e.stderr, e.StderrBytes, e.StderrTruncated}} {
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
