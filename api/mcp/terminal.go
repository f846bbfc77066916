// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

func openTerminal() tool {
	return tool{
		name: "open_terminal", title: "Open a terminal", destructive: true, openWorld: true,
		about: "Start a program at a terminal of a sandbox, for what needs one: editors, debuggers, prompts for a password. read_process, write_process (keys, as they are: \\u0003 is Ctrl-C) and stop_process work on it, resize_terminal changes its size.",
		params: []param{
			{name: "command", kind: text, about: "Shell text. Default: a login shell.", aliases: []string{"cmd"}},
			paramWhich(),
			{name: "cols", kind: integer, min: 1, max: mostTerminal, about: "Columns, default 80."},
			{name: "rows", kind: integer, min: 1, max: mostTerminal, about: "Rows, default 24."},
			{name: "cwd", kind: text, about: "Where it starts, default /workspace, as root /root.", aliases: []string{"workdir"}},
			{name: "env", kind: texts, about: "Environment variables.", aliases: []string{"env_vars", "environment"}},
			{name: "as_user", kind: text, about: "sandbox (default) or root.", aliases: []string{"user"}},
			paramOutput(),
		},
		example: `{"command": "python3"}`,
		run:     atTerminal,
	}
}

// mostTerminal is the most columns, or rows, of a terminal.
const mostTerminal = 1000

func atTerminal(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	r := engine.StartRequest{
		Shell: orElse(a.text("command"), sandbox.LoginShell), Cwd: a.text("cwd"), Env: a.env("env"), User: a.text("as_user"),
		Terminal: &engine.TerminalSize{Cols: uint16(a.number("cols", 0)), Rows: uint16(a.number("rows", 0))},
	}
	limit := int(a.number("max_output_chars", defaultOutput))
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, true)
	if err != nil {
		return nil, err
	}
	rec, err := c.engine.StartProcess(ctx, c.Caller, ref, r)
	if err != nil {
		return nil, err
	}
	seen, err := c.watch(ctx, ref, rec.ID, watch{wait: longestWait / 15, quiet: settled})
	if err != nil {
		return nil, err
	}
	out := seen.answer(ctx, c, ref, limit)
	if seen.Result == nil {
		out.verdict = "opened a terminal: " + out.verdict
	}
	return out, nil
}

func resizeTerminal() tool {
	return tool{
		name: "resize_terminal", title: "Resize a terminal", idempotent: true,
		about: "Tell a program at a terminal that this has another size.",
		params: []param{
			paramProcess(),
			paramSandbox(),
			{name: "cols", kind: integer, min: 1, max: mostTerminal, required: true, about: "Columns."},
			{name: "rows", kind: integer, min: 1, max: mostTerminal, required: true, about: "Rows."},
		},
		example: `{"process": "p1b2c3", "cols": 120, "rows": 40}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			process, cols, rows := c.args.text("process"), int(c.args.number("cols", 0)), int(c.args.number("rows", 0))
			if err := c.args.err(); err != nil {
				return nil, err
			}
			ref, err := c.place(ctx, false)
			if err != nil {
				return nil, err
			}
			if err := c.engine.ResizeProcess(ctx, c.Caller, ref, process, cols, rows); err != nil {
				return nil, c.noProcess(ctx, ref, process, err)
			}
			return &answer{verdict: fmt.Sprintf("the terminal of process %s has %d columns and %d rows", process, cols, rows)}, nil
		},
	}
}
