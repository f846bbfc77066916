// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

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

func listRuns() tool {
	return tool{
		name: "list_runs", title: "List runs", readOnly: true, idempotent: true,
		about: "List runs of run_sandbox, the newest first, also those of sandboxes that are gone. With run: all of that one, its output and links to its artifacts.",
		params: []param{
			{name: "run", kind: text, about: "Id of one run to see.", aliases: []string{"run_id", "id"}},
			{name: "sandbox", kind: text, about: "Only those of this sandbox. Left out: all of yours.", aliases: []string{"sandbox_id", "identifier", "name"}},
			{name: "limit", kind: integer, min: 1, max: 100, about: "How many, default 20.", aliases: []string{"max_results"}},
			paramCursor(),
		},
		example: `{"sandbox": "my-project"}`,
		run:     runsThatAre,
	}
}

func runsThatAre(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	id := a.text("run")
	r := engine.RunsRequest{Sandbox: a.text("sandbox"), Limit: int(a.number("limit", 20)), Cursor: a.text("cursor")}
	if err := a.err(); err != nil {
		return nil, err
	}
	if id != "" {
		return c.oneRun(ctx, id, r.Sandbox)
	}
	page, err := c.engine.Runs(ctx, c.Caller, r)
	if err != nil {
		return nil, err
	}
	out := runList{Runs: make([]runShape, 0, len(page.Items)), NextCursor: page.Next}
	ans := &answer{verdict: counted(len(page.Items), "run", "runs")}
	for _, one := range page.Items {
		sh := runShape{
			RunID: one.ID, Identifier: one.Identifier, SandboxID: string(one.Sandbox), State: string(one.State), Error: one.Error,
			Artifacts: len(one.Artifacts), CreatedAt: timeText(one.CreatedAt), EndedAt: timeText(one.EndedAt),
		}
		out.Runs = append(out.Runs, sh)
		line := sh.RunID + " · " + sh.State + " · sandbox " + sh.Identifier + " · " + sh.CreatedAt
		if sh.Artifacts > 0 {
			line += " · " + counted(sh.Artifacts, "artifact", "artifacts")
		}
		if sh.Error != "" {
			line += " · " + oneLineOf(sh.Error)
		}
		ans.lines = append(ans.lines, line)
	}
	if page.Next != "" {
		ans.notes = append(ans.notes, "there are more; call again with cursor "+quote(page.Next))
	}
	ans.structured = out
	return ans, nil
}

// oneRun shows a run with what it gave out. of is the sandbox that it has to be of; "":
// any.
func (c *call) oneRun(ctx context.Context, id, of string) (*answer, error) {
	r, err := c.engine.RunOf(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	if !isOf(r, of) {
		return nil, otherRun(r, of)
	}
	streams, err := c.engine.RunStreams(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	return c.runAnswer(r, streams), nil
}

// isOf tells whether a run is of the sandbox of this name or id; "": of any.
func isOf(r *sandbox.Run, of string) bool {
	return of == "" || of == r.Identifier || of == string(r.Sandbox)
}

func otherRun(r *sandbox.Run, of string) error {
	return fault.New(fault.NotFound, "the run %s is of another sandbox than %q", r.ID, clip(of)).
		WithRemedy("leave sandbox out: a run's id says which it is of")
}
