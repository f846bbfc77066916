// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"strings"
)

// mostTail bounds the last lines of a process that are asked for, and tailBytes how
// much of its output is looked at for them.
const (
	mostTail  = 2000
	tailBytes = 1 << 20
)

func readProcess() tool {
	return tool{
		name: "read_process", title: "Read a process's output", readOnly: true, idempotent: true,
		about: "See how a process goes on that run_command started: whether it runs or how it ended, and its output. The answer gives the since of the next call.",
		params: []param{
			paramProcess(),
			paramSandbox(),
			{name: "since", kind: integer, min: 0, max: 1e15, field: "cursor", about: "Only output after this, from the answer before. Default 0: all.", aliases: []string{"cursor"}},
			{name: "tail_lines", kind: integer, min: 1, max: mostTail, about: "Only the last lines of stdout and stderr.", aliases: []string{"tail", "lines"}},
			paramWait(longestWait.Seconds(), "Wait so long for its end, 0 to 30. Default 0."),
			paramOutput(),
		},
		example: `{"process": "p1b2c3", "wait_seconds": 30}`,
		run:     readOn,
	}
}

func readOn(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	w := watch{cursor: int64(a.number("since", 0)), wait: seconds(a.number("wait_seconds", 0))}
	tail := int(a.number("tail_lines", 0))
	if tail > 0 {
		if a.has("since") && w.cursor > 0 {
			a.add("tail_lines", "is given beside since; give one of them")
		}
		w.cursor, w.recent = 0, tailBytes
	}
	limit := int(a.number("max_output_chars", defaultOutput))
	process := a.text("process")
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	if x := c.cells.find(c.Caller, process); x != nil {
		if !x.wait(ctx, w.wait) && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return x.answer(ctx, c, limit)
	}
	seen, err := c.watch(ctx, ref, process, w)
	if err != nil {
		return nil, err
	}
	if tail > 0 {
		seen.stdout.keepLines(tail)
		seen.stderr.keepLines(tail)
		seen.lost = ""
	}
	return seen.answer(ctx, c, ref, limit), nil
}

// keepLines drops all but the last n lines.
func (c *capture) keepLines(n int) {
	whole := string(c.tail)
	if c.bytes == 0 {
		whole = string(c.head) + whole
	}
	rest := strings.TrimSuffix(whole, "\n")
	for ; n > 0; n-- {
		i := strings.LastIndexByte(rest, '\n')
		if i < 0 {
			break
		}
		rest = rest[:i]
		if n == 1 {
			whole = whole[i+1:]
		}
	}
	*c = capture{}
	c.add([]byte(whole))
}
