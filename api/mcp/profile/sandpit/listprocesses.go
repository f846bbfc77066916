// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"strings"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/api/mcp/toolset"
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
		PID: r.PID, StartedAt: toolset.TimeText(r.StartedAt),
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

func listProcesses() toolset.Tool {
	return toolset.Tool{
		Name: "list_processes", Title: "List processes", ReadOnly: true, Idempotent: true,
		About: "List the commands of a sandbox that run, or with all those that have ended, too; the newest first. read_process, write_process and stop_process take their ids.",
		Params: []toolset.Param{
			paramSandbox(),
			{Name: "all", Kind: toolset.Boolean, About: "Those that have ended, too. Default false."},
			{Name: "terminals", Kind: toolset.Boolean, About: "Only those at a terminal. Default false."},
			{Name: "limit", Kind: toolset.Integer, Min: 1, Max: 100, About: "How many, default 20.", Aliases: []string{"max_results"}},
			paramCursor(),
		},
		Example: `{"sandbox": "my-project"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			a := c.Args
			all := a.Bool("all", false)
			q := engine.ProcessQuery{Running: !all, Tty: a.Bool("terminals", false), Newest: true, Limit: int(a.Number("limit", 20)), Cursor: a.Text("cursor")}
			if err := a.Err(); err != nil {
				return nil, err
			}
			ref, err := place(ctx, c, false)
			if err != nil {
				return nil, err
			}
			page, err := c.Engine.ListProcesses(ctx, c.Caller, ref, q)
			if err != nil {
				return nil, err
			}
			out := processList{Processes: make([]processShape, 0, len(page.Items)), NextCursor: page.Next}
			what := toolset.Counted(len(page.Items), "process runs", "processes run")
			if all {
				what = toolset.Counted(len(page.Items), "process", "processes")
			}
			ans := &toolset.Answer{Verdict: what + " in sandbox " + ref}
			var b strings.Builder
			for _, r := range page.Items {
				out.Processes = append(out.Processes, processShapeOf(r))
				b.WriteString(processLine(r) + "\n")
			}
			if page.Next != "" {
				ans.Notes = append(ans.Notes, "there are more; call again with cursor "+toolset.Quote(page.Next))
			}
			if b.Len() > 0 {
				ans.Sections = []toolset.Section{{Title: "processes", Body: b.String()}} // what they run is not the server's words
			}
			ans.Structured = out
			return ans, nil
		},
	}
}

func processLine(r agent.Record) string {
	line := r.ID + " · runs for " + toolset.Took(time.Since(r.StartedAt))
	if r.Result != nil {
		e := toolset.Outcome{ExecResult: engine.ExecResult{Result: *r.Result}}
		line = r.ID + " · " + e.Verdict()
	}
	if r.Terminal {
		line += " · at a terminal"
	}
	return line + " · " + oneLineOf(commandText(r))
}
