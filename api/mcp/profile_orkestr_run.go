// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"time"

	"sandpit.dev/engine"
)

// leastTimeout is the shortest of a command, in seconds.
const leastTimeout = 0.1

func orkestrShell() tool {
	return tool{
		name: "run_shell", title: "Run a shell command", destructive: true, openWorld: true,
		about: "Run a shell command (bash) in a sandbox. Answers with stdout, stderr, exit_code and duration_ms when it has ended; one that fails is a normal result.",
		params: []param{
			orkestrWords().which(),
			{name: "command", kind: text, required: true, about: "Shell text.", aliases: []string{"cmd", "script"}},
			{name: "cwd", kind: text, about: "Default /workspace.", aliases: []string{"workdir", "working_dir"}},
			{name: "env", kind: texts, about: "Variables of this command.", aliases: []string{"env_vars"}},
			{name: "timeout", kind: number, min: leastTimeout, max: engine.MaxCommandTimeout.Seconds(), field: "timeout_seconds", about: "Kill it after so many seconds, default 600.", aliases: []string{"timeout_seconds"}},
		},
		example: `{"sandbox_id": "an-id", "command": "python3 --version"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			return orkestrRun(ctx, c, engine.ExecRequest{
				Shell: c.args.text("command"), Cwd: c.args.text("cwd"), Env: c.args.env("env"), Timeout: seconds(c.args.number("timeout", 0)),
			})
		},
	}
}

func orkestrCode() tool {
	return tool{
		name: "run_code", title: "Run code", destructive: true, openWorld: true,
		about: "Run a snippet of Python, Node or bash in a sandbox, as a program of its own. Answers like run_shell: print what you want to see.",
		params: []param{
			orkestrWords().which(),
			{name: "language", kind: text, enum: []string{"python", "node", "bash"}, required: true, about: "python, node or bash.", aliases: []string{"lang"}},
			{name: "code", kind: text, required: true, about: "The whole program.", aliases: []string{"source", "snippet"}},
		},
		example: `{"sandbox_id": "an-id", "language": "python", "code": "print(6*7)"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			program := c.args.text("code")
			if program == "" && c.args.has("code") {
				c.args.add("code", "is empty")
			}
			// By the standard input, which may be longer than an argument; but what bash
			// runs would read the rest of a program from there.
			switch c.args.text("language") {
			case "python":
				return orkestrRun(ctx, c, engine.ExecRequest{Argv: []string{"python3", "-"}, Stdin: []byte(program)})
			case "node":
				return orkestrRun(ctx, c, engine.ExecRequest{Argv: []string{"node", "-"}, Stdin: []byte(program)})
			}
			return orkestrRun(ctx, c, engine.ExecRequest{Shell: program})
		},
	}
}

// orkestrOutcome is what became of a command: the first four are known from Orkestr's
// quickstart, all others are there only where there is something to say.
type orkestrOutcome struct {
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	ExitCode   int      `json:"exit_code"`
	DurationMS int64    `json:"duration_ms"`
	Cause      string   `json:"cause,omitempty"` // of its end, where that was not its own
	Signal     string   `json:"signal,omitempty"`
	Truncated  bool     `json:"truncated,omitempty"`
	Notes      []string `json:"notes,omitempty"`
}

// orkestrCommand is how long a command may take that says nothing of it.
func orkestrCommand(c *call) time.Duration { return min(defaultTimeout, c.engine.MostCommandTime()) }

func orkestrRun(ctx context.Context, c *call, r engine.ExecRequest) (*answer, error) {
	w := orkestrWords()
	w.in(c)
	if err := c.args.err(); err != nil {
		return nil, err
	}
	if r.Timeout == 0 {
		r.Timeout = orkestrCommand(c)
	}
	done, notes, err := w.whole(ctx, c, r)
	if err != nil {
		return nil, err
	}
	return inJSON(orkestrOutcome{
		Stdout: done.stdout.text, Stderr: done.stderr.text, ExitCode: done.ExitCode, DurationMS: done.Duration.Milliseconds(),
		Cause: string(done.Cause), Signal: done.Signal, Truncated: !done.whole(), Notes: notes,
	}, "")
}
