// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
)

// settled is how long a process is quiet before what it answered is given back.
const settled = 300 * time.Millisecond

func writeProcess() toolset.Tool {
	return toolset.Tool{
		Name: "write_process", Title: "Write to a process", Destructive: true,
		About: `Write to the standard input of a process that run_command started with background, and see what it answers. End a line with \n.`,
		Params: []toolset.Param{
			paramProcess(),
			{Name: "input", Kind: toolset.Text, About: "The text, exactly as it is to arrive.", Aliases: []string{"text", "data", "stdin"}},
			paramSandbox(),
			{Name: "end_input", Kind: toolset.Boolean, About: "Close its input behind the text.", Aliases: []string{"close", "eof"}},
			paramWait(longestWait.Seconds(), "Wait so long for an answer, 0 to 30. Default 2."),
			paramOutput(),
		},
		Example: `{"process": "p1b2c3", "input": "print(1)\n"}`,
		Run:     writeInput,
	}
}

func writeInput(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	process, input, end := a.Text("process"), a.Text("input"), a.Bool("end_input", false)
	wait, limit := toolset.Seconds(a.Number("wait_seconds", 2)), int(a.Number("max_output_chars", toolset.DefaultOutput))
	if input == "" && !end {
		a.Add("input", "is empty, and end_input is not true: there is nothing to write")
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	before, err := c.Engine.Process(ctx, c.Caller, ref, process)
	if err != nil {
		return nil, noProcess(ctx, c, ref, process, err)
	}
	if before.Result != nil {
		return nil, endedProcess(ctx, c, ref, process)
	}
	taken, err := c.Engine.WriteInput(ctx, c.Caller, ref, process, engine.InputRequest{Data: []byte(input), Offset: -1, End: end})
	if err != nil {
		if fault.Is(err, fault.State) {
			if rec, perr := c.Engine.Process(ctx, c.Caller, ref, process); perr == nil && rec.Result != nil {
				return nil, endedProcess(ctx, c, ref, process)
			}
			e := fault.As(err)
			return nil, fault.Wrap(fault.State, err, "%s", e.Message).
				WithRemedy("start it with run_command and {\"background\": true}, which keeps its input open")
		}
		return nil, err
	}
	w := watch{cursor: before.LastSeq, wait: wait, quiet: settled}
	seen, err := watchProcess(ctx, c, ref, process, w)
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
	out.Verdict = wrote + " · " + out.Verdict
	return out, nil
}

// endedProcess is the error about a process that is no more.
func endedProcess(ctx context.Context, c *toolset.Call, ref, process string) error {
	seen, err := watchProcess(ctx, c, ref, process, watch{})
	if err != nil {
		return err
	}
	e := fault.New(fault.State, "%s", seen.state())
	if path, err := c.KeepLog(ctx, ref, process); err == nil {
		return e.WithRemedy("its output is in the file %s of the sandbox: read_file shows it; run_command starts it again", path)
	}
	return e.WithRemedy("start it again with run_command")
}
