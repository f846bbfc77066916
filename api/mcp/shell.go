// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
)

func runInShell() tool {
	return tool{
		name: "run_in_shell", title: "Run a command in a shell that stays", destructive: true, openWorld: true,
		about: "Run a command in a named bash of a sandbox: the directory, variables, functions and background jobs that it leaves are there for the next one. The first command makes the shell. " +
			"A command that takes longer than wait_seconds goes on; command_id waits for it again.",
		params: []param{
			{name: "command", kind: text, about: "Shell text (bash).", aliases: []string{"cmd", "script"}},
			{name: "shell", kind: text, about: "Name of the shell, default main.", aliases: []string{"shell_name", "session"}},
			paramWhich(),
			{name: "command_id", kind: text, about: "Instead of command: one that goes on, or one of the last, to see its result.", aliases: []string{"process", "process_id"}},
			{name: "env", kind: texts, about: "Variables of this command alone.", aliases: []string{"env_vars", "environment"}},
			{name: "stdin", kind: text, about: "Its standard input."},
			{name: "as_user", kind: text, about: "Whose shell it is: sandbox (default) or root.", aliases: []string{"user"}},
			paramWait(mostWait.Seconds(), "Wait so long for its end, 0 to 55. Default 45."),
			{name: "timeout_seconds", kind: number, min: leastTimeout, max: engine.MaxCommandTimeout.Seconds(), about: "Interrupt it after this, default 600.", aliases: []string{"timeout"}},
			paramOutput(),
		},
		example: `{"command": "cd app && export DEBUG=1"}`,
		run:     inShell,
	}
}

// mainShell is the shell of who names none.
const mainShell = "main"

func inShell(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	name, id := orElse(a.text("shell"), mainShell), a.text("command_id")
	r := engine.ExecRequest{
		Shell: a.text("command"), Env: a.env("env"), Stdin: []byte(a.text("stdin")), User: a.text("as_user"),
		Timeout: seconds(a.number("timeout_seconds", 0)), KillOnDisconnect: true, TellArtifacts: true,
	}
	wait, limit := seconds(a.number("wait_seconds", defaultWait.Seconds())), int(a.number("max_output_chars", defaultOutput))
	switch {
	case id != "" && r.Shell != "":
		a.add("command_id", "is given beside command; it is of a command that was begun before")
	case id == "" && r.Shell == "":
		a.add("command", "is missing: what the shell is to run")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, id == "")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	var res engine.ShellResult
	if id != "" {
		res, err = c.engine.ShellCommand(ctx, c.Caller, ref, name, id, wait)
	} else {
		if r.Timeout == 0 {
			r.Timeout = min(defaultTimeout, c.engine.MostCommandTime())
		}
		r.Wait = max(wait, time.Millisecond) // zero is for ever
		r.MaxStdout, r.MaxStderr = engine.DefaultOutput, engine.DefaultOutput
		res, err = c.engine.ShellExec(ctx, c.Caller, ref, name, r, nil)
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), transport.ErrStopping) && id == "" {
			return nil, fault.Wrap(fault.Unavailable, err, "the server is stopping; the command goes on").
				WithRemedy("list_contexts shows the shell when the server is back, list_activity how the command ended")
		}
		return nil, err
	}
	out := c.shellAnswer(ctx, ref, &res, limit)
	if !res.Running && !res.NoArtifacts && id == "" {
		c.addMade(ctx, out, ref, began)
	}
	return out, nil
}

// shellAnswer shows a command of a shell as run_command shows its own.
func (c *call) shellAnswer(ctx context.Context, ref string, res *engine.ShellResult, limit int) *answer {
	e := &ended{ExecResult: res.ExecResult}
	var stdout, stderr capture
	stdout.add(res.Stdout)
	stderr.add(res.Stderr)
	c.progress.wrote(res.Stdout)
	e.show(&stdout, &stderr, limit)
	out := &answer{verdict: e.verdict()}
	if res.Running {
		out.verdict = "still running: command " + res.ProcessID
		out.lines = append(out.lines,
			fmt.Sprintf(`next: run_in_shell with {"sandbox": %s, "shell": %s, "command_id": %s} waits for it and shows what it wrote`, quote(ref), quote(res.Shell.Name), quote(res.ProcessID)),
			fmt.Sprintf(`end_context with {"sandbox": %s, "shell": %s, "how": "interrupt"} ends it, and the shell stays`, quote(ref), quote(res.Shell.Name)))
	}
	out.verdict += " · shell " + res.Shell.Name + " · sandbox " + ref
	if !e.whole() {
		out.verdict += " · output shortened"
		out.notes = append(out.notes, "output was shortened; write it to a file with > out.log 2>&1 and read that")
	}
	if res.Shell.Restarted != "" {
		out.notes = append(out.notes, "the shell was begun anew before this command, and what earlier ones left is gone: "+res.Shell.Restarted)
	}
	if res.Shell.Ended {
		out.notes = append(out.notes, "the command took the shell with it; the next one begins another")
	}
	if !res.Running {
		out.lines = append(out.lines, e.reasons(ctx, c)...)
		out.lines = append(out.lines, changed(res.Changes, res.ChangesTotal, res.ChangesComplete)...)
	}
	out.sections = e.sections("")
	return out
}
