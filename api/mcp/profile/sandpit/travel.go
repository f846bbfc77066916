// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
)

func rollbackSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "rollback_sandbox", Title: "Bring a sandbox's files back as they were", Destructive: true,
		About: "Bring all files of a sandbox back as they were in a snapshot. Its processes end, and what changed since is lost unless it is kept by snapshot_sandbox first.",
		Params: []toolset.Param{
			{Name: "to", Kind: toolset.Text, Required: true, About: "Name of one of its snapshots, id of any, or base: as it was when it was new.", Aliases: []string{"snapshot", "name", "snapshot_name", "snapshot_id"}},
			paramWhich(),
		},
		Example: `{"to": "before-upgrade"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			to := c.Args.Text("to")
			if to == "" {
				c.Args.Add("to", "is empty")
			}
			ref, err := place(ctx, c, false)
			if err != nil {
				return nil, err
			}
			s, err := c.Engine.Rollback(ctx, c.Caller, ref, to)
			if err != nil {
				return nil, err
			}
			return &toolset.Answer{
				Verdict:    fmt.Sprintf("rolled sandbox %s back to %s: its files are as they were, and it is %s", s.Ref(), to, s.State),
				Structured: describe(ctx, c, s),
			}, nil
		},
	}
}

func forkSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "fork_sandbox", Title: "Copy a sandbox",
		About: "Make running copies of a sandbox, as it is now or as it was in a snapshot: to try several ways at once, each in files of its own. Processes are not copied.",
		Params: []toolset.Param{
			paramWhich(),
			{Name: "count", Kind: toolset.Integer, Min: 1, Max: engine.MaxForks, About: "How many, default 1.", Aliases: []string{"n", "copies"}},
			{Name: "from", Kind: toolset.Text, About: "Name of one of its snapshots, or id of any. Left out: as it is now.", Aliases: []string{"snapshot"}},
			{Name: "name", Kind: toolset.Text, Field: "key", About: "Your own name for the copy, if it is one. Left out: an id only.", Aliases: []string{"key", "new_name"}},
		},
		Example: `{"sandbox": "my-project", "count": 3}`,
		Run:     fork,
	}
}

// forkList is the structured answer of fork_sandbox.
type forkList struct {
	Sandboxes []shape `json:"sandboxes"`
}

func fork(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := engine.ForkRequest{Count: int(a.Number("count", 1)), From: a.Text("from"), Key: a.Text("name")}
	if r.Key != "" && r.Count > 1 {
		a.Add("name", "cannot be that of %d copies; leave it out, or ask for one", r.Count)
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	forks, err := c.Engine.Fork(ctx, c.Caller, ref, r)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(forks))
	out := forkList{Sandboxes: make([]shape, 0, len(forks))}
	for _, s := range forks {
		names = append(names, s.Ref())
		out.Sandboxes = append(out.Sandboxes, describe(ctx, c, s))
	}
	return &toolset.Answer{
		Verdict:    fmt.Sprintf("forked sandbox %s: %s, running", ref, toolset.Counted(len(forks), "copy", "copies")),
		Lines:      []string{"pass one of these as sandbox: " + strings.Join(names, ", ")},
		Structured: out,
	}, nil
}

func diffSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "diff_sandbox", Title: "What changed in a sandbox", ReadOnly: true, Idempotent: true,
		About: "List the files of a sandbox that were created, modified or deleted between two points in time.",
		Params: []toolset.Param{
			paramSandbox(),
			{Name: "from", Kind: toolset.Text, About: "The earlier point: a snapshot's name or id, or base (default): as it was when it was new."},
			{Name: "to", Kind: toolset.Text, About: "The later point: a snapshot's name or id, or now (default)."},
			{Name: "limit", Kind: toolset.Integer, Min: 1, Max: 1000, About: "Most files, default 200.", Aliases: []string{"max_results"}},
		},
		Example: `{"from": "before-upgrade"}`,
		Run:     diff,
	}
}

func diff(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := engine.DiffRequest{From: a.Text("from"), To: a.Text("to"), Limit: int(a.Number("limit", 200))}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	got, err := c.Engine.Diff(ctx, c.Caller, ref, r)
	if err != nil {
		return nil, err
	}
	total := max(got.Total, len(got.Files))
	points := fmt.Sprintf("between %s and %s", orElse(r.From, "base"), orElse(r.To, "now"))
	if total == 0 && got.Complete {
		return &toolset.Answer{Verdict: fmt.Sprintf("nothing changed in sandbox %s %s", ref, points)}, nil
	}
	out := &toolset.Answer{Verdict: fmt.Sprintf("%s in sandbox %s %s", toolset.Counted(total, "change", "changes"), ref, points)}
	if total > len(got.Files) {
		out.Notes = append(out.Notes, fmt.Sprintf("only %d of them are listed; call again with a higher limit", len(got.Files)))
	}
	if !got.Complete {
		out.Notes = append(out.Notes, "there may be others: some were missed")
	}
	var b strings.Builder
	for _, f := range got.Files {
		b.WriteString(f.Action + " " + toolset.PrintablePath(f.Path))
		if f.Action != "deleted" {
			b.WriteString(" (" + toolset.BytesText(f.Size) + ")")
		}
		b.WriteByte('\n')
	}
	out.Sections = append(out.Sections, toolset.Section{Title: "changes", Body: b.String()})
	return out, nil
}

func orElse(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
