// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// paramWhich is paramSandbox for tools that have a name of their own to give.
func paramWhich() toolset.Param {
	return toolset.Param{
		Name: "sandbox", Kind: toolset.Text, About: "Name or id of the sandbox. Left out: your default one.",
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
	s, err := c.Engine.CreateSnapshot(ctx, c.Caller, ref, r)
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
			r := engine.SnapshotsRequest{Limit: int(c.Args.Number("limit", 20)), Cursor: c.Args.Text("cursor")}
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
			page, err := c.Engine.Snapshots(ctx, c.Caller, r)
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
			{Name: "snapshot", Kind: toolset.Text, Required: true, About: "Name of one of the sandbox's snapshots, or id of any.", Aliases: []string{"name", "snapshot_name", "snapshot_id"}},
			paramWhich(),
		},
		Example: `{"sandbox": "my-project", "snapshot": "before-upgrade"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			name := c.Args.Text("snapshot")
			if name == "" {
				c.Args.Add("snapshot", "is empty")
			}
			of := ""
			if !sandbox.ValidID(name) || c.Args.Has("sandbox") { // an id needs no sandbox, which may be gone
				var err error
				if of, err = place(ctx, c, false); err != nil {
					return nil, err
				}
			}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			if err := c.Engine.DeleteSnapshot(ctx, c.Caller, of, name); err != nil {
				return nil, err
			}
			return &toolset.Answer{Verdict: "deleted snapshot " + name}, nil
		},
	}
}
