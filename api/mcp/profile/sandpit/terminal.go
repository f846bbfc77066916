// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

func openTerminal() toolset.Tool {
	return toolset.Tool{
		Name: "open_terminal", Title: "Open a terminal", Destructive: true, OpenWorld: true,
		About: "Start a program at a terminal of a sandbox, for what needs one: editors, debuggers, prompts for a password. read_process, write_process (keys, as they are: \\u0003 is Ctrl-C) and stop_process work on it, resize_terminal changes its size.",
		Params: []toolset.Param{
			{Name: "command", Kind: toolset.Text, About: "Shell text. Default: a login shell.", Aliases: []string{"cmd"}},
			paramWhich(),
			{Name: "cols", Kind: toolset.Integer, Min: 1, Max: mostTerminal, About: "Columns, default 80."},
			{Name: "rows", Kind: toolset.Integer, Min: 1, Max: mostTerminal, About: "Rows, default 24."},
			{Name: "cwd", Kind: toolset.Text, About: "Where it starts, default /workspace, as root /root.", Aliases: []string{"workdir"}},
			{Name: "env", Kind: toolset.Texts, About: "Environment variables.", Aliases: []string{"env_vars", "environment"}},
			{Name: "as_user", Kind: toolset.Text, About: "sandbox (default) or root.", Aliases: []string{"user"}},
			paramOutput(),
		},
		Example: `{"command": "python3"}`,
		Run:     atTerminal,
	}
}

// mostTerminal is the most columns, or rows, of a terminal.
const mostTerminal = 1000

func atTerminal(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := engine.StartRequest{
		Shell: orElse(a.Text("command"), sandbox.LoginShell), Cwd: a.Text("cwd"), Env: a.Env("env"), User: a.Text("as_user"),
		Terminal: &engine.TerminalSize{Cols: uint16(a.Number("cols", 0)), Rows: uint16(a.Number("rows", 0))},
	}
	limit := int(a.Number("max_output_chars", toolset.DefaultOutput))
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, true)
	if err != nil {
		return nil, err
	}
	rec, err := c.Engine.StartProcess(ctx, c.Caller, ref, r)
	if err != nil {
		return nil, err
	}
	seen, err := watchProcess(ctx, c, ref, rec.ID, watch{wait: longestWait / 15, quiet: settled})
	if err != nil {
		return nil, err
	}
	out := seen.answer(ctx, c, ref, limit)
	if seen.Result == nil {
		out.Verdict = "opened a terminal: " + out.Verdict
	}
	return out, nil
}

func resizeTerminal() toolset.Tool {
	return toolset.Tool{
		Name: "resize_terminal", Title: "Resize a terminal", Idempotent: true,
		About: "Tell a program at a terminal that this has another size.",
		Params: []toolset.Param{
			paramProcess(),
			paramSandbox(),
			{Name: "cols", Kind: toolset.Integer, Min: 1, Max: mostTerminal, Required: true, About: "Columns."},
			{Name: "rows", Kind: toolset.Integer, Min: 1, Max: mostTerminal, Required: true, About: "Rows."},
		},
		Example: `{"process": "p1b2c3", "cols": 120, "rows": 40}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			process, cols, rows := c.Args.Text("process"), int(c.Args.Number("cols", 0)), int(c.Args.Number("rows", 0))
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			ref, err := place(ctx, c, false)
			if err != nil {
				return nil, err
			}
			if err := c.Engine.ResizeProcess(ctx, c.Caller, ref, process, cols, rows); err != nil {
				return nil, noProcess(ctx, c, ref, process, err)
			}
			return &toolset.Answer{Verdict: fmt.Sprintf("the terminal of process %s has %d columns and %d rows", process, cols, rows)}, nil
		},
	}
}
