// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"

	"sandpit.dev/agent"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func listFiles() toolset.Tool {
	return toolset.Tool{
		Name: "list_files", Title: "List a directory", ReadOnly: true, Idempotent: true,
		About: "List a directory of a sandbox, or with depth the tree below it: names, types, sizes.",
		Params: []toolset.Param{
			{Name: "path", Kind: toolset.Text, About: "Directory, default /workspace.", Aliases: []string{"dir", "directory", "file_path"}},
			paramSandbox(),
			{Name: "depth", Kind: toolset.Integer, Min: 1, Max: mostDepth, About: "Levels, default 1. Below, .git and node_modules are passed over.", Aliases: []string{"max_depth"}},
			{Name: "glob", Kind: toolset.Text, About: "Only such names, like *.py or src/**/*.ts.", Aliases: []string{"pattern", "include"}},
			{Name: "limit", Kind: toolset.Integer, Min: 1, Max: 2000, About: "Most entries, default 200.", Aliases: []string{"max_results"}},
			paramCursor(),
		},
		Example: `{"path": "src"}`,
		Run:     listDir,
	}
}

// folder is the structured answer.
type folder struct {
	Path    string  `json:"path"`
	Entries []entry `json:"entries"`
	More    bool    `json:"more"` // there are entries beyond the limit
	Next    string  `json:"next_cursor,omitempty"`
}

type entry struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Size     int64  `json:"size_bytes"`
	Modified string `json:"modified,omitempty"`
	Target   string `json:"target,omitempty"`
}

func listDir(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	dir := a.Text("path")
	if dir == "" {
		dir = sandbox.Workspace
	}
	o := agent.SearchOptions{
		Depth: int(a.Number("depth", 1)), Glob: a.Text("glob"), Limit: int(a.Number("limit", 200)), After: a.Text("cursor"),
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	at, found, end, err := listing(ctx, c, ref, dir, o)
	if err != nil {
		return nil, searchError(ctx, c, ref, dir, err)
	}
	out := folder{Path: at, Entries: make([]entry, 0, len(found)), More: end.Ended != ""}
	ans := &toolset.Answer{Verdict: fmt.Sprintf("%s in %s · sandbox %s", toolset.Counted(len(found), "entry", "entries"), toolset.PrintablePath(out.Path), ref)}
	if end.Ended == "limit" && len(found) > 0 {
		out.Next = found[len(found)-1].Rel
		ans.Notes = append(ans.Notes, "there are more; call again with cursor "+toolset.Quote(out.Next))
		end.Ended = ""
	}
	ans.Notes = append(ans.Notes, partly(&end)...)
	for i := range found {
		f := &found[i].File
		out.Entries = append(out.Entries, entry{Name: found[i].Rel, Type: string(f.Type), Size: f.Size, Modified: toolset.TimeText(f.ModTime), Target: f.Target})
		line := toolset.PrintablePath(found[i].Rel)
		switch f.Type {
		case agent.Dir:
			line += "/"
		case agent.Symlink:
			line += " -> " + toolset.PrintablePath(f.Target)
		case agent.File:
			line += " (" + toolset.BytesText(f.Size) + ")"
		default:
			line += " (" + string(f.Type) + ")"
		}
		ans.Lines = append(ans.Lines, line)
	}
	ans.Structured = out
	return ans, nil
}

// mostDepth is how deep a tree is listed.
const mostDepth = 20

// listing lists what is below a directory. An agent of an earlier build knows one
// level, and no patterns.
func listing(ctx context.Context, c *toolset.Call, ref, dir string, o agent.SearchOptions) (string, []agent.Match, agent.SearchEnd, error) {
	at, found, end, err := c.Engine.SearchFiles(ctx, c.Caller, ref, dir, o)
	if !fault.Is(err, fault.Unsupported) || o.Depth > 1 || o.Glob != "" || o.After != "" {
		return at.Path, found, end, err
	}
	files, more, err := c.Engine.ListFiles(ctx, c.Caller, ref, dir, agent.ListOptions{Limit: o.Limit})
	for _, f := range files {
		found = append(found, agent.Match{Rel: f.Name, File: f})
	}
	if more {
		end.Ended = "entries"
	}
	return toolset.Absolute(dir), found, end, err
}
