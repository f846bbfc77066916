// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
)

func shell() toolset.Tool {
	return toolset.Tool{
		Name: "run_shell", Title: "Run a shell command", Destructive: true, OpenWorld: true,
		About: "Run a shell command (bash) in a sandbox. Answers with stdout, stderr, exit_code and duration_ms when it has ended; one that fails is a normal result.",
		Params: []toolset.Param{
			words().Which(),
			{Name: "command", Kind: toolset.Text, Required: true, About: "Shell text.", Aliases: []string{"cmd", "script"}},
			{Name: "cwd", Kind: toolset.Text, About: "Default /workspace.", Aliases: []string{"workdir", "working_dir"}},
			{Name: "env", Kind: toolset.Texts, About: "Variables of this command.", Aliases: []string{"env_vars"}},
			{Name: "timeout", Kind: toolset.Number, Min: toolset.LeastTimeout, Max: engine.MaxCommandTimeout.Seconds(), Field: "timeout_seconds", About: "Kill it after so many seconds, default 600.", Aliases: []string{"timeout_seconds"}},
		},
		Example: `{"sandbox_id": "an-id", "command": "python3 --version"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			return run(ctx, c, engine.ExecRequest{
				Shell: c.Args.Text("command"), Cwd: c.Args.Text("cwd"), Env: c.Args.Env("env"), Timeout: toolset.Seconds(c.Args.Number("timeout", 0)),
			})
		},
	}
}

func code() toolset.Tool {
	return toolset.Tool{
		Name: "run_code", Title: "Run code", Destructive: true, OpenWorld: true,
		About: "Run a snippet of Python, Node or bash in a sandbox, as a program of its own. Answers like run_shell: print what you want to see.",
		Params: []toolset.Param{
			words().Which(),
			{Name: "language", Kind: toolset.Text, Enum: []string{"python", "node", "bash"}, Required: true, About: "python, node or bash.", Aliases: []string{"lang"}},
			{Name: "code", Kind: toolset.Text, Required: true, About: "The whole program.", Aliases: []string{"source", "snippet"}},
		},
		Example: `{"sandbox_id": "an-id", "language": "python", "code": "print(6*7)"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			program := c.Args.Text("code")
			if program == "" && c.Args.Has("code") {
				c.Args.Add("code", "is empty")
			}
			// By the standard input, which may be longer than an argument; but what bash
			// runs would read the rest of a program from there.
			switch c.Args.Text("language") {
			case "python":
				return run(ctx, c, engine.ExecRequest{Argv: []string{"python3", "-"}, Stdin: []byte(program)})
			case "node":
				return run(ctx, c, engine.ExecRequest{Argv: []string{"node", "-"}, Stdin: []byte(program)})
			}
			return run(ctx, c, engine.ExecRequest{Shell: program})
		},
	}
}

// outcome is what became of a command: the first four are known from Orkestr's
// quickstart, all others are there only where there is something to say.
type outcome struct {
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	ExitCode   int      `json:"exit_code"`
	DurationMS int64    `json:"duration_ms"`
	Cause      string   `json:"cause,omitempty"` // of its end, where that was not its own
	Signal     string   `json:"signal,omitempty"`
	Truncated  bool     `json:"truncated,omitempty"`
	Notes      []string `json:"notes,omitempty"`
}

// command is how long a command may take that says nothing of it.
func command(c *toolset.Call) time.Duration {
	return min(toolset.DefaultTimeout, c.Server.MostCommandTime())
}

func run(ctx context.Context, c *toolset.Call, r engine.ExecRequest) (*toolset.Answer, error) {
	w := words()
	w.In(c)
	if err := c.Args.Err(); err != nil {
		return nil, err
	}
	if r.Timeout == 0 {
		r.Timeout = command(c)
	}
	done, notes, err := w.Whole(ctx, c, r)
	if err != nil {
		return nil, err
	}
	return toolset.JSONAnswer(outcome{
		Stdout: done.Stdout.Text, Stderr: done.Stderr.Text, ExitCode: done.ExitCode, DurationMS: done.Duration.Milliseconds(),
		Cause: string(done.Cause), Signal: done.Signal, Truncated: !done.Whole(), Notes: notes,
	}, "")
}
