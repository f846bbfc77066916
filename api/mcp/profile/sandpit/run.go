// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"

	"sandpit.dev/api/mcp/batch"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/runs"
)

func runSandbox(d runs.Defaults) toolset.Tool {
	return toolset.Tool{
		Name: "run_sandbox", Title: "Run commands in order", Destructive: true, OpenWorld: true,
		About: "Run a batch of commands, one after the other, in the sandbox of an identifier, which the first run creates. " +
			"The batch ends at the first failure unless options.continue_on_error or the command's allow_failure says otherwise. " +
			"It waits for the end, at most options.await_timeout_ms; the run goes on after that, and run_id waits again. " +
			"Files under /artifacts are kept for download after each run. For single commands run_command is simpler.",
		Params: []toolset.Param{
			{Name: "identifier", Kind: toolset.Text, Required: true, Field: "sandbox", About: "1 to 36 letters, digits, - and _. The same identifier gives the same sandbox.", Aliases: []string{"sandbox", "session_key"}},
			{Name: "commands", Kind: toolset.Nested, Schema: batch.CommandsSchema(d), About: "a list like [{\"shell\": \"ls\"}]"},
			{Name: "options", Kind: toolset.Nested, Schema: batch.OptionsSchema(true, d)},
			{Name: "run_id", Kind: toolset.Text, About: "Instead of commands: a run that goes on, to wait for."},
		},
		Example: `{"identifier": "chat-1", "commands": [{"shell": "python3 --version"}]}`,
		Run:     func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) { return batch.Run(ctx, c, true, d) },
		Past:    batch.Past,
	}
}

// runShape is a run as list_runs shows it.
type runShape struct {
	RunID      string `json:"run_id"`
	Identifier string `json:"identifier"`
	SandboxID  string `json:"sandbox_id,omitempty"`
	State      string `json:"state"`
	Error      string `json:"error,omitempty"`
	Artifacts  int    `json:"artifacts,omitempty"`
	CreatedAt  string `json:"created_at"`
	EndedAt    string `json:"ended_at,omitempty"`
}

// runList is the structured answer of list_runs.
type runList struct {
	Runs       []runShape `json:"runs"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

func listRuns() toolset.Tool {
	return toolset.Tool{
		Name: "list_runs", Title: "List runs", ReadOnly: true, Idempotent: true,
		About: "List runs of run_sandbox, the newest first, also those of sandboxes that are gone. With run: all of that one, its output and links to its artifacts.",
		Params: []toolset.Param{
			{Name: "run", Kind: toolset.Text, About: "Id of one run to see.", Aliases: []string{"run_id", "id"}},
			{Name: "sandbox", Kind: toolset.Text, About: "Only those of this sandbox. Left out: all of yours.", Aliases: []string{"sandbox_id", "identifier", "name"}},
			{Name: "limit", Kind: toolset.Integer, Min: 1, Max: 100, About: "How many, default 20.", Aliases: []string{"max_results"}},
			paramCursor(),
		},
		Example: `{"sandbox": "my-project"}`,
		Run:     runsThatAre,
	}
}

func runsThatAre(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	id := a.Text("run")
	r := runs.ListRequest{Sandbox: a.Text("sandbox"), Limit: int(a.Number("limit", 20)), Cursor: a.Text("cursor")}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if id != "" {
		return oneRun(ctx, c, id, r.Sandbox)
	}
	page, err := c.Runs.List(ctx, c.Caller, r)
	if err != nil {
		return nil, err
	}
	out := runList{Runs: make([]runShape, 0, len(page.Items)), NextCursor: page.Next}
	ans := &toolset.Answer{Verdict: toolset.Counted(len(page.Items), "run", "runs")}
	for _, one := range page.Items {
		sh := runShape{
			RunID: one.ID, Identifier: one.Identifier, SandboxID: string(one.Sandbox), State: string(one.State), Error: one.Error,
			Artifacts: len(one.Artifacts), CreatedAt: toolset.TimeText(one.CreatedAt), EndedAt: toolset.TimeText(one.EndedAt),
		}
		out.Runs = append(out.Runs, sh)
		line := sh.RunID + " · " + sh.State + " · sandbox " + sh.Identifier + " · " + sh.CreatedAt
		if sh.Artifacts > 0 {
			line += " · " + toolset.Counted(sh.Artifacts, "artifact", "artifacts")
		}
		if sh.Error != "" {
			line += " · " + oneLineOf(sh.Error)
		}
		ans.Lines = append(ans.Lines, line)
	}
	if page.Next != "" {
		ans.Notes = append(ans.Notes, "there are more; call again with cursor "+toolset.Quote(page.Next))
	}
	ans.Structured = out
	return ans, nil
}

// oneRun shows a run with what it gave out. of is the sandbox that it has to be of; "":
// any.
func oneRun(ctx context.Context, c *toolset.Call, id, of string) (*toolset.Answer, error) {
	r, err := c.Runs.Get(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	if !batch.IsOf(r, of) {
		return nil, batch.OtherRun(r, of)
	}
	streams, err := c.Runs.Streams(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	return batch.Answer(c, r, streams), nil
}
