// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"strings"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine"
)

// processShape is a process as the tools show it.
type processShape struct {
	Process   string   `json:"process"`
	Status    string   `json:"status"`
	Command   string   `json:"command,omitempty"`
	Argv      []string `json:"argv,omitempty"`
	Cwd       string   `json:"cwd"`
	User      string   `json:"user"`
	Terminal  bool     `json:"terminal,omitempty"`
	PID       int      `json:"pid,omitempty"` // inside
	StartedAt string   `json:"started_at"`
	ExitCode  *int     `json:"exit_code,omitempty"`
	Signal    string   `json:"signal,omitempty"`
	Cause     string   `json:"cause,omitempty"`
}

func processShapeOf(r agent.Record) processShape {
	out := processShape{
		Process: r.ID, Status: "running", Command: r.Shell, Argv: r.Argv, Cwd: r.Cwd, User: r.User, Terminal: r.Terminal,
		PID: r.PID, StartedAt: timeText(r.StartedAt),
	}
	if res := r.Result; res != nil {
		out.Status, out.ExitCode, out.Signal, out.Cause = "exited", &res.ExitCode, res.Signal, string(res.Cause)
	}
	return out
}

// processList is the structured answer of list_processes.
type processList struct {
	Processes  []processShape `json:"processes"`
	NextCursor string         `json:"next_cursor,omitempty"`
}

func listProcesses() tool {
	return tool{
		name: "list_processes", title: "List processes", readOnly: true, idempotent: true,
		about: "List the commands of a sandbox that run, or with all those that have ended, too; the newest first. read_process, write_process and stop_process take their ids.",
		params: []param{
			paramSandbox(),
			{name: "all", kind: boolean, about: "Those that have ended, too. Default false."},
			{name: "terminals", kind: boolean, about: "Only those at a terminal. Default false."},
			{name: "limit", kind: integer, min: 1, max: 100, about: "How many, default 20.", aliases: []string{"max_results"}},
			paramCursor(),
		},
		example: `{"sandbox": "my-project"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			a := c.args
			all := a.bool("all", false)
			q := engine.ProcessQuery{Running: !all, Tty: a.bool("terminals", false), Newest: true, Limit: int(a.number("limit", 20)), Cursor: a.text("cursor")}
			if err := a.err(); err != nil {
				return nil, err
			}
			ref, err := c.place(ctx, false)
			if err != nil {
				return nil, err
			}
			page, err := c.engine.ListProcesses(ctx, c.Caller, ref, q)
			if err != nil {
				return nil, err
			}
			out := processList{Processes: make([]processShape, 0, len(page.Items)), NextCursor: page.Next}
			what := counted(len(page.Items), "process runs", "processes run")
			if all {
				what = counted(len(page.Items), "process", "processes")
			}
			ans := &answer{verdict: what + " in sandbox " + ref}
			var b strings.Builder
			for _, r := range page.Items {
				out.Processes = append(out.Processes, processShapeOf(r))
				b.WriteString(processLine(r) + "\n")
			}
			if page.Next != "" {
				ans.notes = append(ans.notes, "there are more; call again with cursor "+quote(page.Next))
			}
			if b.Len() > 0 {
				ans.sections = []section{{"processes", b.String()}} // what they run is not the server's words
			}
			ans.structured = out
			return ans, nil
		},
	}
}

func processLine(r agent.Record) string {
	line := r.ID + " · runs for " + took(time.Since(r.StartedAt))
	if r.Result != nil {
		e := ended{ExecResult: engine.ExecResult{Result: *r.Result}}
		line = r.ID + " · " + e.verdict()
	}
	if r.Terminal {
		line += " · at a terminal"
	}
	return line + " · " + oneLineOf(commandText(r))
}
