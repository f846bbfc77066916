// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/engine"
)

func rollbackSandbox() tool {
	return tool{
		name: "rollback_sandbox", title: "Bring a sandbox's files back as they were", destructive: true,
		about: "Bring all files of a sandbox back as they were in a snapshot. Its processes end, and what changed since is lost unless it is kept by snapshot_sandbox first.",
		params: []param{
			{name: "to", kind: text, required: true, about: "Name of one of its snapshots, id of any, or base: as it was when it was new.", aliases: []string{"snapshot", "name", "snapshot_name", "snapshot_id"}},
			paramWhich(),
		},
		example: `{"to": "before-upgrade"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			to := c.args.text("to")
			if to == "" {
				c.args.add("to", "is empty")
			}
			ref, err := c.place(ctx, false)
			if err != nil {
				return nil, err
			}
			s, err := c.engine.Rollback(ctx, c.Caller, ref, to)
			if err != nil {
				return nil, err
			}
			return &answer{
				verdict:    fmt.Sprintf("rolled sandbox %s back to %s: its files are as they were, and it is %s", s.Ref(), to, s.State),
				structured: c.shape(ctx, s),
			}, nil
		},
	}
}

func forkSandbox() tool {
	return tool{
		name: "fork_sandbox", title: "Copy a sandbox",
		about: "Make running copies of a sandbox, as it is now or as it was in a snapshot: to try several ways at once, each in files of its own. Processes are not copied.",
		params: []param{
			paramWhich(),
			{name: "count", kind: integer, min: 1, max: engine.MaxForks, about: "How many, default 1.", aliases: []string{"n", "copies"}},
			{name: "from", kind: text, about: "Name of one of its snapshots, or id of any. Left out: as it is now.", aliases: []string{"snapshot"}},
			{name: "name", kind: text, field: "key", about: "Your own name for the copy, if it is one. Left out: an id only.", aliases: []string{"key", "new_name"}},
		},
		example: `{"sandbox": "my-project", "count": 3}`,
		run:     fork,
	}
}

// forkList is the structured answer of fork_sandbox.
type forkList struct {
	Sandboxes []shape `json:"sandboxes"`
}

func fork(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	r := engine.ForkRequest{Count: int(a.number("count", 1)), From: a.text("from"), Key: a.text("name")}
	if r.Key != "" && r.Count > 1 {
		a.add("name", "cannot be that of %d copies; leave it out, or ask for one", r.Count)
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	forks, err := c.engine.Fork(ctx, c.Caller, ref, r)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(forks))
	out := forkList{Sandboxes: make([]shape, 0, len(forks))}
	for _, s := range forks {
		names = append(names, s.Ref())
		out.Sandboxes = append(out.Sandboxes, c.shape(ctx, s))
	}
	return &answer{
		verdict:    fmt.Sprintf("forked sandbox %s: %s, running", ref, counted(len(forks), "copy", "copies")),
		lines:      []string{"pass one of these as sandbox: " + strings.Join(names, ", ")},
		structured: out,
	}, nil
}

func diffSandbox() tool {
	return tool{
		name: "diff_sandbox", title: "What changed in a sandbox", readOnly: true, idempotent: true,
		about: "List the files of a sandbox that were created, modified or deleted between two points in time.",
		params: []param{
			paramSandbox(),
			{name: "from", kind: text, about: "The earlier point: a snapshot's name or id, or base (default): as it was when it was new."},
			{name: "to", kind: text, about: "The later point: a snapshot's name or id, or now (default)."},
			{name: "limit", kind: integer, min: 1, max: 1000, about: "Most files, default 200.", aliases: []string{"max_results"}},
		},
		example: `{"from": "before-upgrade"}`,
		run:     diff,
	}
}

func diff(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	r := engine.DiffRequest{From: a.text("from"), To: a.text("to"), Limit: int(a.number("limit", 200))}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	got, err := c.engine.Diff(ctx, c.Caller, ref, r)
	if err != nil {
		return nil, err
	}
	total := max(got.Total, len(got.Files))
	points := fmt.Sprintf("between %s and %s", orElse(r.From, "base"), orElse(r.To, "now"))
	if total == 0 && got.Complete {
		return &answer{verdict: fmt.Sprintf("nothing changed in sandbox %s %s", ref, points)}, nil
	}
	out := &answer{verdict: fmt.Sprintf("%s in sandbox %s %s", counted(total, "change", "changes"), ref, points)}
	if total > len(got.Files) {
		out.notes = append(out.notes, fmt.Sprintf("only %d of them are listed; call again with a higher limit", len(got.Files)))
	}
	if !got.Complete {
		out.notes = append(out.notes, "there may be others: some were missed")
	}
	var b strings.Builder
	for _, f := range got.Files {
		b.WriteString(f.Action + " " + printablePath(f.Path))
		if f.Action != "deleted" {
			b.WriteString(" (" + bytesText(f.Size) + ")")
		}
		b.WriteByte('\n')
	}
	out.sections = append(out.sections, section{"changes", b.String()})
	return out, nil
}

// counted is a number of things.
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

func orElse(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
