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
			paramWait(longestWait.Seconds(), "For its end; default 0."),
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
			paramWait(longestWait.Seconds(), "For an answer; default 2."),
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
	before, err := c.Processes.Process(ctx, c.Caller, ref, process)
	if err != nil {
		return nil, noProcess(ctx, c, ref, process, err)
	}
	if before.Result != nil {
		return nil, endedProcess(ctx, c, ref, process)
	}
	taken, err := c.Processes.WriteInput(ctx, c.Caller, ref, process, engine.InputRequest{Data: []byte(input), Offset: -1, End: end})
	if err != nil {
		if fault.Is(err, fault.State) {
			if rec, perr := c.Processes.Process(ctx, c.Caller, ref, process); perr == nil && rec.Result != nil {
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
