// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
)

// settled is how long a process is quiet before what it answered is given back.
const settled = 300 * time.Millisecond

func writeProcess() tool {
	return tool{
		name: "write_process", title: "Write to a process", destructive: true,
		about: `Write to the standard input of a process that run_command started with background, and see what it answers. End a line with \n.`,
		params: []param{
			paramProcess(),
			{name: "input", kind: text, about: "The text, exactly as it is to arrive.", aliases: []string{"text", "data", "stdin"}},
			paramSandbox(),
			{name: "end_input", kind: boolean, about: "Close its input behind the text.", aliases: []string{"close", "eof"}},
			paramWait(longestWait.Seconds(), "Wait so long for an answer, 0 to 30. Default 2."),
			paramOutput(),
		},
		example: `{"process": "p1b2c3", "input": "print(1)\n"}`,
		run:     writeInput,
	}
}

func writeInput(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	process, input, end := a.text("process"), a.text("input"), a.bool("end_input", false)
	wait, limit := seconds(a.number("wait_seconds", 2)), int(a.number("max_output_chars", defaultOutput))
	if input == "" && !end {
		a.add("input", "is empty, and end_input is not true: there is nothing to write")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	before, err := c.engine.Process(ctx, c.Caller, ref, process)
	if err != nil {
		return nil, c.noProcess(ctx, ref, process, err)
	}
	if before.Result != nil {
		return nil, c.endedProcess(ctx, ref, process)
	}
	taken, err := c.engine.WriteInput(ctx, c.Caller, ref, process, engine.InputRequest{Data: []byte(input), Offset: -1, End: end})
	if err != nil {
		if fault.Is(err, fault.State) {
			if rec, perr := c.engine.Process(ctx, c.Caller, ref, process); perr == nil && rec.Result != nil {
				return nil, c.endedProcess(ctx, ref, process)
			}
			e := fault.As(err)
			return nil, fault.Wrap(fault.State, err, "%s", e.Message).
				WithRemedy("start it with run_command and {\"background\": true}, which keeps its input open")
		}
		return nil, err
	}
	w := watch{cursor: before.LastSeq, wait: wait, quiet: settled}
	seen, err := c.watch(ctx, ref, process, w)
	if err != nil {
		return nil, err
	}
	out := seen.answer(ctx, c, ref, limit)
	wrote := fmt.Sprintf("wrote %d bytes", taken.Bytes)
	if taken.Bytes < len(input) {
		wrote += fmt.Sprintf(" of %d, since the process does not read; write the rest later", len(input))
	}
	if taken.Closed {
		wrote += ", and its input is closed"
	}
	out.verdict = wrote + " · " + out.verdict
	return out, nil
}

// endedProcess is the error about a process that is no more.
func (c *call) endedProcess(ctx context.Context, ref, process string) error {
	seen, err := c.watch(ctx, ref, process, watch{})
	if err != nil {
		return err
	}
	e := fault.New(fault.State, "%s", seen.state())
	if path, err := c.keepLog(ctx, ref, process); err == nil {
		return e.WithRemedy("its output is in the file %s of the sandbox: read_file shows it; run_command starts it again", path)
	}
	return e.WithRemedy("start it again with run_command")
}
