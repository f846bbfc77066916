// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// paramWhich is paramSandbox for tools that have a name of their own to give.
func paramWhich() param {
	return param{
		name: "sandbox", kind: text, about: "Name or id of the sandbox. Left out: your default one.",
		aliases: []string{"sandbox_id", "sandbox_name", "id", "identifier", "session_key"},
	}
}

func snapshotSandbox() tool {
	return tool{
		name: "snapshot_sandbox", title: "Keep a sandbox's disk as it is",
		about: "Keep all files of a sandbox as they are now, in an instant, while it runs. rollback_sandbox brings them back, fork_sandbox makes a copy of them.",
		params: []param{
			paramWhich(),
			{name: "name", kind: text, about: "Name of the snapshot, 1 to 100 characters without /. Left out: an id only.", aliases: []string{"snapshot", "snapshot_name", "label"}},
			{name: "replace", kind: boolean, about: "Delete the snapshot that has the name. Default false: that is an error.", aliases: []string{"overwrite"}},
		},
		example: `{"name": "before-upgrade"}`,
		run:     keep,
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
	out := snapshotShape{ID: string(s.ID), Name: s.Name, Sandbox: string(s.Sandbox), Auto: s.Auto, CreatedAt: timeText(s.CreatedAt)}
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
		line += " · " + bytesText(*s.SizeBytes)
	}
	return line + " · " + s.CreatedAt
}

func keep(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	r := engine.SnapshotRequest{Name: a.text("name"), Replace: a.bool("replace", false)}
	if a.has("name") && r.Name == "" {
		a.add("name", "is empty; leave it out for a snapshot without a name")
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	s, err := c.engine.CreateSnapshot(ctx, c.Caller, ref, r)
	if err != nil {
		return nil, err
	}
	sh := snapshotShapeOf(s)
	return &answer{
		verdict: "kept sandbox " + ref + " as snapshot " + sh.called(),
		lines: []string{
			sh.line(),
			fmt.Sprintf(`rollback_sandbox with {"sandbox": %s, "to": %s} brings it back`, quote(ref), quote(sh.called())),
		},
		structured: sh,
	}, nil
}

func listSnapshots() tool {
	return tool{
		name: "list_snapshots", title: "List snapshots", readOnly: true, idempotent: true,
		about: "List the snapshots of a sandbox, the newest first; with all those of your project, whose sandboxes may be gone.",
		params: []param{
			paramSandbox(),
			{name: "all", kind: boolean, about: "Of all sandboxes. Default false."},
			{name: "limit", kind: integer, min: 1, max: 100, about: "How many, default 20.", aliases: []string{"max_results"}},
			paramCursor(),
		},
		example: `{"sandbox": "my-project"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			r := engine.SnapshotsRequest{Limit: int(c.args.number("limit", 20)), Cursor: c.args.text("cursor")}
			of := "your project"
			if !c.args.bool("all", false) {
				ref, err := c.place(ctx, false)
				if err != nil {
					return nil, err
				}
				r.Sandbox, of = ref, "sandbox "+ref
			} else if c.args.has("sandbox") {
				c.args.add("all", "is given beside sandbox; give one of them")
			}
			if err := c.args.err(); err != nil {
				return nil, err
			}
			page, err := c.engine.Snapshots(ctx, c.Caller, r)
			if err != nil {
				return nil, err
			}
			out := snapshotList{Snapshots: make([]snapshotShape, 0, len(page.Items)), Total: page.Total, NextCursor: page.Next}
			ans := &answer{verdict: fmt.Sprintf("%d of %d snapshots of %s", len(page.Items), page.Total, of)}
			for _, s := range page.Items {
				sh := snapshotShapeOf(s)
				out.Snapshots = append(out.Snapshots, sh)
				line := sh.line()
				if r.Sandbox == "" {
					line += " · of sandbox " + orElse(sh.Sandbox, "none: it was imported")
				}
				ans.lines = append(ans.lines, line)
			}
			if page.Next != "" {
				ans.notes = append(ans.notes, "there are more; call again with cursor "+quote(page.Next))
			}
			ans.structured = out
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

func deleteSnapshot() tool {
	return tool{
		name: "delete_snapshot", title: "Delete a snapshot", destructive: true, idempotent: true,
		about: "Delete a snapshot for ever. The sandbox, and what was made from it, stay.",
		params: []param{
			{name: "snapshot", kind: text, required: true, about: "Name of one of the sandbox's snapshots, or id of any.", aliases: []string{"name", "snapshot_name", "snapshot_id"}},
			paramWhich(),
		},
		example: `{"sandbox": "my-project", "snapshot": "before-upgrade"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			name := c.args.text("snapshot")
			if name == "" {
				c.args.add("snapshot", "is empty")
			}
			of := ""
			if !sandbox.ValidID(name) || c.args.has("sandbox") { // an id needs no sandbox, which may be gone
				var err error
				if of, err = c.place(ctx, false); err != nil {
					return nil, err
				}
			}
			if err := c.args.err(); err != nil {
				return nil, err
			}
			if err := c.engine.DeleteSnapshot(ctx, c.Caller, of, name); err != nil {
				return nil, err
			}
			return &answer{verdict: "deleted snapshot " + name}, nil
		},
	}
}
