// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/sandbox"
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
			s, err := c.Snapshots.Rollback(ctx, c.Caller, ref, to)
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

func promoteSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "promote_sandbox", Title: "Put a copy in the place of its original", Destructive: true,
		About: "Keep one of the copies that fork_sandbox made: it takes the name, labels, clocks, volumes and snapshots of the sandbox that it was copied from, which is deleted and stays as a snapshot.",
		Params: []toolset.Param{
			paramThisSandbox(),
			{Name: "snapshot", Kind: toolset.Text, Field: "name", About: "Name for that snapshot."},
		},
		Example: `{"sandbox": "my-experiment", "snapshot": "before"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			r := engine.PromoteRequest{Name: c.Args.Text("snapshot")}
			ref, err := place(ctx, c, false)
			if err != nil {
				return nil, err
			}
			s, err := c.Snapshots.Promote(ctx, c.Caller, ref, r)
			if err != nil {
				return nil, err
			}
			return &toolset.Answer{
				Verdict:    fmt.Sprintf("sandbox %s is %s now, with the files of the copy", s.Ref(), s.ID),
				Lines:      []string{fmt.Sprintf("what it was before: the snapshot %s; rollback_sandbox brings that back", s.Parent)},
				Structured: describe(ctx, c, s),
			}, nil
		},
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
	forks, err := c.Snapshots.Fork(ctx, c.Caller, ref, r)
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
	got, err := c.Snapshots.Diff(ctx, c.Caller, ref, r)
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

// paramWhich is paramSandbox for tools that have a name of their own to give.
func paramWhich() toolset.Param {
	return toolset.Param{
		Name: "sandbox", Kind: toolset.Text, About: "Name or id; left out: your default one.",
		Aliases: []string{"sandbox_id", "sandbox_name", "id", "identifier", "session_key"},
	}
}

func snapshotSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "snapshot_sandbox", Title: "Keep a sandbox's disk as it is",
		About: "Keep all files of a sandbox as they are now, in an instant, while it runs. rollback_sandbox brings them back, fork_sandbox makes a copy of them.",
		Params: []toolset.Param{
			paramWhich(),
			{Name: "name", Kind: toolset.Text, About: "Name of the snapshot, 1 to 100 characters without /. Left out: an id only.", Aliases: []string{"snapshot", "snapshot_name", "label"}},
			{Name: "replace", Kind: toolset.Boolean, About: "Delete the snapshot that has the name. Default false: that is an error.", Aliases: []string{"overwrite"}},
		},
		Example: `{"name": "before-upgrade"}`,
		Run:     keep,
	}
}

// snapshotShape is a snapshot as the tools show it.
type snapshotShape struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Sandbox   string `json:"sandbox_id,omitempty"`
	Auto      bool   `json:"auto,omitempty"`
	SizeBytes *int64 `json:"size_bytes,omitempty"`
	CreatedAt string `json:"created_at"`
}

func snapshotShapeOf(s *sandbox.Snapshot) snapshotShape {
	out := snapshotShape{ID: string(s.ID), Name: s.Name, Sandbox: string(s.Sandbox), Auto: s.Auto, CreatedAt: toolset.TimeText(s.CreatedAt)}
	if s.SizeBytes >= 0 {
		out.SizeBytes = &s.SizeBytes
	}
	return out
}

// called is what a model writes to name the snapshot.
func (s *snapshotShape) called() string {
	if s.Name != "" {
		return s.Name
	}
	return s.ID
}

func (s *snapshotShape) line() string {
	line := s.called()
	if s.Name != "" {
		line += " · id " + s.ID
	}
	if s.Auto {
		line += " · taken by itself after a command"
	}
	if s.SizeBytes != nil {
		line += " · " + toolset.BytesText(*s.SizeBytes)
	}
	return line + " · " + s.CreatedAt
}

func keep(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := engine.SnapshotRequest{Name: a.Text("name"), Replace: a.Bool("replace", false)}
	if a.Has("name") && r.Name == "" {
		a.Add("name", "is empty; leave it out for a snapshot without a name")
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	s, err := c.Snapshots.CreateSnapshot(ctx, c.Caller, ref, r)
	if err != nil {
		return nil, err
	}
	sh := snapshotShapeOf(s)
	return &toolset.Answer{
		Verdict: "kept sandbox " + ref + " as snapshot " + sh.called(),
		Lines: []string{
			sh.line(),
			fmt.Sprintf(`rollback_sandbox with {"sandbox": %s, "to": %s} brings it back`, toolset.Quote(ref), toolset.Quote(sh.called())),
		},
		Structured: sh,
	}, nil
}

func listSnapshots() toolset.Tool {
	return toolset.Tool{
		Name: "list_snapshots", Title: "List snapshots", ReadOnly: true, Idempotent: true,
		About: "List the snapshots of a sandbox, the newest first; with all those of your project, whose sandboxes may be gone.",
		Params: []toolset.Param{
			paramSandbox(),
			{Name: "all", Kind: toolset.Boolean, About: "Of all sandboxes. Default false."},
			{Name: "limit", Kind: toolset.Integer, Min: 1, Max: 100, About: "How many, default 20.", Aliases: []string{"max_results"}},
			paramCursor(),
		},
		Example: `{"sandbox": "my-project"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			r := snapshot.Query{Limit: int(c.Args.Number("limit", 20)), Cursor: c.Args.Text("cursor")}
			of := "your project"
			if !c.Args.Bool("all", false) {
				ref, err := place(ctx, c, false)
				if err != nil {
					return nil, err
				}
				r.Sandbox, of = ref, "sandbox "+ref
			} else if c.Args.Has("sandbox") {
				c.Args.Add("all", "is given beside sandbox; give one of them")
			}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			page, err := c.Snapshots.Snapshots(ctx, c.Caller, r)
			if err != nil {
				return nil, err
			}
			out := snapshotList{Snapshots: make([]snapshotShape, 0, len(page.Items)), Total: page.Total, NextCursor: page.Next}
			ans := &toolset.Answer{Verdict: fmt.Sprintf("%d of %d snapshots of %s", len(page.Items), page.Total, of)}
			for _, s := range page.Items {
				sh := snapshotShapeOf(s)
				out.Snapshots = append(out.Snapshots, sh)
				line := sh.line()
				if r.Sandbox == "" {
					line += " · of sandbox " + orElse(sh.Sandbox, "none: it was imported")
				}
				ans.Lines = append(ans.Lines, line)
			}
			if page.Next != "" {
				ans.Notes = append(ans.Notes, "there are more; call again with cursor "+toolset.Quote(page.Next))
			}
			ans.Structured = out
			return ans, nil
		},
	}
}

// snapshotList is the structured answer of list_snapshots.
type snapshotList struct {
	Snapshots  []snapshotShape `json:"snapshots"`
	Total      int             `json:"total"`
	NextCursor string          `json:"next_cursor,omitempty"`
}

func deleteSnapshot() toolset.Tool {
	return toolset.Tool{
		Name: "delete_snapshot", Title: "Delete a snapshot", Destructive: true, Idempotent: true,
		About: "Delete a snapshot for ever. The sandbox, and what was made from it, stay.",
		Params: []toolset.Param{
			{Name: "snapshot", Kind: toolset.Text, Required: true, About: "Name of one of the sandbox's snapshots, or id or SANDBOX/NAME of any.", Aliases: []string{"name", "snapshot_name", "snapshot_id"}},
			paramWhich(),
		},
		Example: `{"sandbox": "my-project", "snapshot": "before-upgrade"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			name := c.Args.Text("snapshot")
			if name == "" {
				c.Args.Add("snapshot", "is empty")
			}
			of := ""
			if !sandbox.ValidID(name) && !strings.Contains(name, "/") || c.Args.Has("sandbox") { // these need no sandbox, which may be gone
				var err error
				if of, err = place(ctx, c, false); err != nil {
					return nil, err
				}
			}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			if err := c.Snapshots.DeleteSnapshot(ctx, c.Caller, of, name); err != nil {
				return nil, err
			}
			return &toolset.Answer{Verdict: "deleted snapshot " + name}, nil
		},
	}
}
