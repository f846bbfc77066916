// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func listSandboxes() tool {
	states := make([]string, 0, len(sandbox.States()))
	for _, s := range sandbox.States() {
		if s != sandbox.Deleted {
			states = append(states, string(s))
		}
	}
	return tool{
		name: "list_sandboxes", title: "List sandboxes", readOnly: true, idempotent: true,
		about: "List your sandboxes, the newest first, with state, image and size.",
		params: []param{
			{name: "state", kind: text, enum: states, about: "Only those in this state.", aliases: []string{"status"}},
			{name: "search", kind: text, about: "Only those with this in name, id or image.", aliases: []string{"query", "name"}},
			{name: "limit", kind: integer, min: 1, max: 100, about: "How many, default 20.", aliases: []string{"max_results"}},
			paramCursor(),
		},
		example: `{"state": "running"}`,
		run:     list,
	}
}

// sandboxList is the structured answer.
type sandboxList struct {
	Sandboxes  []shape `json:"sandboxes"`
	Total      int     `json:"total"`
	NextCursor string  `json:"next_cursor,omitempty"`
}

func list(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	q := store.SandboxQuery{Search: a.text("search"), Limit: int(a.number("limit", 20)), Cursor: a.text("cursor")}
	if s := a.text("state"); s != "" {
		q.States = []sandbox.State{sandbox.State(s)}
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	page, err := c.engine.List(ctx, c.Caller, q)
	if err != nil {
		return nil, err
	}
	out := sandboxList{Sandboxes: make([]shape, 0, len(page.Items)), Total: page.Total, NextCursor: page.Next}
	ans := &answer{verdict: fmt.Sprintf("%d of %d sandboxes", len(page.Items), page.Total)}
	for _, s := range page.Items {
		sh := c.shape(ctx, s)
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
		line += fmt.Sprintf(" · %s · %s CPU, %d MiB · last used %s", s.Image, decimal(s.Limits.CPU), s.Limits.MemoryMB, sh.LastUsedAt)
		if sh.ExpiresAt != "" {
			line += " · deleted at " + sh.ExpiresAt
		}
		if sh.networkShape != nil {
			line += " · " + sh.networkText()
		}
		for _, x := range sh.extras() {
			line += " · " + x
		}
		ans.lines = append(ans.lines, line)
	}
	if page.Next != "" {
		ans.notes = append(ans.notes, "there are more; call again with cursor "+quote(page.Next))
	}
	ans.structured = out
	return ans, nil
}

// paramCursor is the argument that asks for the next page.
func paramCursor() param {
	return param{name: "cursor", kind: text, about: "next_cursor of the answer before."}
}
