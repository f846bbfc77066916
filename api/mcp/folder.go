// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/spelling"
	"sandpit.dev/sandbox"
)

func listFiles() tool {
	return tool{
		name: "list_files", title: "List a directory", readOnly: true, idempotent: true,
		about: "List a directory of a sandbox, or with depth the tree below it: names, types, sizes.",
		params: []param{
			{name: "path", kind: text, about: "Directory, default /workspace.", aliases: []string{"dir", "directory", "file_path"}},
			paramSandbox(),
			{name: "depth", kind: integer, min: 1, max: mostDepth, about: "Levels, default 1. Below, .git and node_modules are passed over.", aliases: []string{"max_depth"}},
			{name: "glob", kind: text, about: "Only such names, like *.py or src/**/*.ts.", aliases: []string{"pattern", "include"}},
			{name: "limit", kind: integer, min: 1, max: 2000, about: "Most entries, default 200.", aliases: []string{"max_results"}},
			paramCursor(),
		},
		example: `{"path": "src"}`,
		run:     listDir,
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

func listDir(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	dir := a.text("path")
	if dir == "" {
		dir = sandbox.Workspace
	}
	o := agent.SearchOptions{
		Depth: int(a.number("depth", 1)), Glob: a.text("glob"), Limit: int(a.number("limit", 200)), After: a.text("cursor"),
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	at, found, end, err := c.listing(ctx, ref, dir, o)
	if err != nil {
		return nil, c.searchError(ctx, ref, dir, err)
	}
	out := folder{Path: at, Entries: make([]entry, 0, len(found)), More: end.Ended != ""}
	ans := &answer{verdict: fmt.Sprintf("%s in %s · sandbox %s", counted(len(found), "entry", "entries"), printablePath(out.Path), ref)}
	if end.Ended == "limit" && len(found) > 0 {
		out.Next = found[len(found)-1].Rel
		ans.notes = append(ans.notes, "there are more; call again with cursor "+quote(out.Next))
		end.Ended = ""
	}
	ans.notes = append(ans.notes, partly(&end)...)
	for i := range found {
		f := &found[i].File
		out.Entries = append(out.Entries, entry{Name: found[i].Rel, Type: string(f.Type), Size: f.Size, Modified: timeText(f.ModTime), Target: f.Target})
		line := printablePath(found[i].Rel)
		switch f.Type {
		case agent.Dir:
			line += "/"
		case agent.Symlink:
			line += " -> " + printablePath(f.Target)
		case agent.File:
			line += " (" + bytesText(f.Size) + ")"
		default:
			line += " (" + string(f.Type) + ")"
		}
		ans.lines = append(ans.lines, line)
	}
	ans.structured = out
	return ans, nil
}

// mostDepth is how deep a tree is listed.
const mostDepth = 20

// listing lists what is below a directory. An agent of an earlier build knows one
// level, and no patterns.
func (c *call) listing(ctx context.Context, ref, dir string, o agent.SearchOptions) (string, []agent.Match, agent.SearchEnd, error) {
	at, found, end, err := c.engine.SearchFiles(ctx, c.Caller, ref, dir, o)
	if !fault.Is(err, fault.Unsupported) || o.Depth > 1 || o.Glob != "" || o.After != "" {
		return at.Path, found, end, err
	}
	files, more, err := c.engine.ListFiles(ctx, c.Caller, ref, dir, agent.ListOptions{Limit: o.Limit})
	for _, f := range files {
		found = append(found, agent.Match{Rel: f.Name, File: f})
	}
	if more {
		end.Ended = "entries"
	}
	return absolute(dir), found, end, err
}

// absolute is a path as the sandbox sees it.
func absolute(p string) string {
	if !path.IsAbs(p) {
		p = path.Join(sandbox.Workspace, p)
	}
	return path.Clean(p)
}

func clip(s string) string { return sandbox.Clip(s, maxShown) }

// pathError adds to an error about a path what is near it.
func (c *call) pathError(ctx context.Context, ref, p string, err error) error {
	e := fault.As(err)
	if e.Code == fault.Invalid && e.Remedy == "" {
		// Most often a directory was taken for a file, or the other way round.
		told := *e
		if _, _, lerr := c.engine.ListFiles(ctx, c.Caller, ref, p, agent.ListOptions{Limit: 1}); lerr == nil {
			return told.WithRemedy("it is a directory: use list_files with {\"path\": %s}", quote(clip(p)))
		} else if c.tool.name == listFiles().name {
			return told.WithRemedy("if it is a file, use read_file with {\"path\": %s}", quote(clip(p)))
		}
		return err
	}
	if e.Code == fault.Denied && c.Caller.May(access.SandboxesWrite) {
		return fault.Wrap(fault.Denied, err, "%s (path %s)", e.Message, quote(clip(p))).
			WithRemedy("the user sandbox writes below %s; run_command with {\"as_user\": \"root\"} may reach the rest of the system", strings.Join(sandbox.Writable(), ", "))
	}
	if e.Code != fault.NotFound || c.gone(ctx) {
		return err
	}
	dir, name := path.Split(absolute(p))
	files, _, lerr := c.engine.ListFiles(ctx, c.Caller, ref, dir, agent.ListOptions{})
	if lerr != nil {
		return fault.Wrap(fault.NotFound, err, "there is no %s, and no directory %s either", quote(clip(p)), quote(clip(dir))).
			WithRemedy("look with list_files what there is; relative paths begin at %s", sandbox.Workspace)
	}
	near := nearest(name, files)
	out := fault.Wrap(fault.NotFound, err, "there is no %s", quote(clip(p)))
	if len(near) == 0 {
		return out.WithRemedy("the directory %s is empty; relative paths begin at %s", clip(dir), sandbox.Workspace)
	}
	return out.WithRemedy("the directory %s has %s; list_files shows all", clip(dir), strings.Join(near, ", "))
}

// nearest gives up to five names, those most like name first.
func nearest(name string, files []agent.FileInfo) []string {
	lower := strings.ToLower(name)
	score := func(f agent.FileInfo) int {
		n := strings.ToLower(f.Name)
		switch {
		case n == lower:
			return 0
		case spelling.Distance(n, lower) <= 2:
			return spelling.Distance(n, lower)
		case strings.Contains(n, lower) || strings.Contains(lower, n):
			return 4
		case len(n) > 2 && len(lower) > 2 && n[:3] == lower[:3]:
			return 5
		}
		return 9
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b agent.FileInfo) int { return score(a) - score(b) })
	var out []string
	for _, f := range files[:min(few, len(files))] {
		out = append(out, printablePath(clip(f.Name)))
	}
	return out
}
