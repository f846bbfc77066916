// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func listSandboxes() toolset.Tool {
	states := make([]string, 0, len(sandbox.States()))
	for _, s := range sandbox.States() {
		if s != sandbox.Deleted {
			states = append(states, string(s))
		}
	}
	return toolset.Tool{
		Name: "list_sandboxes", Title: "List sandboxes", ReadOnly: true, Idempotent: true,
		About: "List your sandboxes, the newest first, with state, image and size.",
		Params: []toolset.Param{
			{Name: "state", Kind: toolset.Text, Enum: states, About: "Only those in this state.", Aliases: []string{"status"}},
			{Name: "search", Kind: toolset.Text, About: "Only those with this in name, id or image.", Aliases: []string{"query", "name"}},
			{Name: "limit", Kind: toolset.Integer, Min: 1, Max: 100, About: "How many, default 20.", Aliases: []string{"max_results"}},
			paramCursor(),
		},
		Example: `{"state": "running"}`,
		Run:     list,
	}
}

// sandboxList is the structured answer.
type sandboxList struct {
	Sandboxes  []shape `json:"sandboxes"`
	Total      int     `json:"total"`
	NextCursor string  `json:"next_cursor,omitempty"`
}

func list(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	q := store.SandboxQuery{Search: a.Text("search"), Limit: int(a.Number("limit", 20)), Cursor: a.Text("cursor")}
	if s := a.Text("state"); s != "" {
		q.States = []sandbox.State{sandbox.State(s)}
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	page, err := c.Engine.List(ctx, c.Caller, q)
	if err != nil {
		return nil, err
	}
	out := sandboxList{Sandboxes: make([]shape, 0, len(page.Items)), Total: page.Total, NextCursor: page.Next}
	ans := &toolset.Answer{Verdict: fmt.Sprintf("%d of %d sandboxes", len(page.Items), page.Total)}
	for _, s := range page.Items {
		sh := describe(ctx, c, s)
		out.Sandboxes = append(out.Sandboxes, sh)
		line := fmt.Sprintf("%s · %s", s.Ref(), s.State)
		if s.State != sandbox.Running && s.StopCause != "" {
			line += " (" + string(s.StopCause) + ")"
		}
		if sh.UnresponsiveSince != "" {
			line += " (unresponsive since " + sh.UnresponsiveSince + ")"
		}
		if s.Key != "" {
			line += " · id " + string(s.ID)
		}
		line += fmt.Sprintf(" · %s · %s CPU, %d MiB · last used %s", s.Image, toolset.Decimal(s.Limits.CPU), s.Limits.MemoryMB, sh.LastUsedAt)
		if sh.ExpiresAt != "" {
			line += " · deleted at " + sh.ExpiresAt
		}
		if sh.networkShape != nil {
			line += " · " + sh.networkText()
		}
		for _, x := range sh.extras() {
			line += " · " + x
		}
		ans.Lines = append(ans.Lines, line)
	}
	if page.Next != "" {
		ans.Notes = append(ans.Notes, "there are more; call again with cursor "+toolset.Quote(page.Next))
	}
	ans.Structured = out
	return ans, nil
}

// paramCursor is the argument that asks for the next page.
func paramCursor() toolset.Param {
	return toolset.Param{Name: "cursor", Kind: toolset.Text, About: "next_cursor of the answer before."}
}
