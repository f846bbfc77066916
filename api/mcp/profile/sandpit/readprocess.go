// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"

	"sandpit.dev/api/mcp/toolset"
)

// mostTail bounds the last lines of a process that are asked for, and tailBytes how
// much of its output is looked at for them.
const (
	mostTail  = 2000
	tailBytes = 1 << 20
)

func readProcess(cs *cells) toolset.Tool {
	return toolset.Tool{
		Name: "read_process", Title: "Read a process's output", ReadOnly: true, Idempotent: true,
		About: "See how a process goes on that run_command started: whether it runs or how it ended, and its output. The answer gives the since of the next call.",
		Params: []toolset.Param{
			paramProcess(),
			paramSandbox(),
			{Name: "since", Kind: toolset.Integer, Min: 0, Max: 1e15, Field: "cursor", About: "Only output after this, from the answer before. Default 0: all.", Aliases: []string{"cursor"}},
			{Name: "tail_lines", Kind: toolset.Integer, Min: 1, Max: mostTail, About: "Only the last lines of stdout and stderr.", Aliases: []string{"tail", "lines"}},
			paramWait(longestWait.Seconds(), "Wait so long for its end, 0 to 30. Default 0."),
			paramOutput(),
		},
		Example: `{"process": "p1b2c3", "wait_seconds": 30}`,
		Run:     func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) { return readOn(ctx, c, cs) },
	}
}

func readOn(ctx context.Context, c *toolset.Call, cs *cells) (*toolset.Answer, error) {
	a := c.Args
	w := watch{cursor: int64(a.Number("since", 0)), wait: toolset.Seconds(a.Number("wait_seconds", 0))}
	tail := int(a.Number("tail_lines", 0))
	if tail > 0 {
		if a.Has("since") && w.cursor > 0 {
			a.Add("tail_lines", "is given beside since; give one of them")
		}
		w.cursor, w.recent = 0, tailBytes
	}
	limit := int(a.Number("max_output_chars", toolset.DefaultOutput))
	process := a.Text("process")
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	if x := cs.find(c.Caller, process); x != nil {
		if !x.wait(ctx, w.wait) && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return x.answer(ctx, c, limit)
	}
	seen, err := watchProcess(ctx, c, ref, process, w)
	if err != nil {
		return nil, err
	}
	if tail > 0 {
		seen.stdout.KeepLines(tail)
		seen.stderr.KeepLines(tail)
		seen.lost = ""
	}
	return seen.answer(ctx, c, ref, limit), nil
}
