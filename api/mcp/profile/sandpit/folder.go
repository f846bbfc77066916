// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine/files"
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
		dir = "."
	}
	o := sandbox.SearchFilesOptions{
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
		case sandbox.Directory:
			line += "/"
		case sandbox.Symlink:
			line += " -> " + toolset.PrintablePath(f.Target)
		case sandbox.RegularFile:
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
func listing(ctx context.Context, c *toolset.Call, ref, dir string, o sandbox.SearchFilesOptions) (string, []sandbox.FileMatch, sandbox.SearchEnd, error) {
	at, found, end, err := c.Files.SearchFiles(ctx, c.Caller, ref, dir, o)
	if !fault.Is(err, fault.Unsupported) || o.Depth > 1 || o.Glob != "" || o.After != "" {
		return at.Path, found, end, err
	}
	files, more, err := c.Files.ListFiles(ctx, c.Caller, ref, dir, sandbox.ListFilesOptions{Limit: o.Limit})
	for _, f := range files {
		found = append(found, sandbox.FileMatch{Rel: f.Name, File: f})
	}
	if more {
		end.Ended = "entries"
	}
	return c.Absolute(ctx, ref, dir), found, end, err
}

func searchFiles() toolset.Tool {
	return toolset.Tool{
		Name: "search_files", Title: "Search in files", ReadOnly: true, Idempotent: true,
		About: "Find the lines of text files in a sandbox that match a regular expression (RE2), as path:line: text. Skips binary files, links, .git and node_modules.",
		Params: []toolset.Param{
			{Name: "pattern", Kind: toolset.Text, Required: true, About: "The expression, held against each line.", Aliases: []string{"regex", "query", "regexp"}},
			paramSandbox(),
			{Name: "path", Kind: toolset.Text, About: "Directory, default /workspace.", Aliases: []string{"dir", "directory"}},
			{Name: "glob", Kind: toolset.Text, About: "Only such files, like *.py or src/**/*.ts.", Aliases: []string{"include", "file_pattern"}},
			{Name: "ignore_case", Kind: toolset.Boolean, About: "Default false.", Aliases: []string{"case_insensitive"}},
			{Name: "limit", Kind: toolset.Integer, Min: 1, Max: 2000, About: "Most lines, default 100.", Aliases: []string{"max_results"}},
		},
		Example: `{"pattern": "def \\w+\\(", "glob": "*.py"}`,
		Run:     searchIn,
	}
}

// searchShown bounds the lines of an answer, in characters.
const searchShown = 40_000

func searchIn(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	dir := orElse(a.Text("path"), ".")
	o := sandbox.SearchFilesOptions{Pattern: a.Text("pattern"), Glob: a.Text("glob"), IgnoreCase: a.Bool("ignore_case", false), Limit: int(a.Number("limit", 100))}
	if o.Pattern == "" {
		a.Add("pattern", "is empty; list_files lists files")
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	at, found, end, err := c.Files.SearchFiles(ctx, c.Caller, ref, dir, o)
	if fault.Is(err, fault.Invalid) && o.Glob == "" {
		// A file, perhaps: then the search is in its directory, for its name.
		one := o
		one.Glob, one.Depth = literal(path.Base(c.Absolute(ctx, ref, dir))), 1
		if at1, found1, end1, err1 := c.Files.SearchFiles(ctx, c.Caller, ref, path.Dir(c.Absolute(ctx, ref, dir)), one); err1 == nil && end1.Files+end1.Binary > 0 {
			at, found, end, err = at1, found1, end1, nil
		}
	}
	if err != nil {
		return nil, searchError(ctx, c, ref, dir, err)
	}
	out := &toolset.Answer{Verdict: fmt.Sprintf("%s in %s of %s · sandbox %s", toolset.Counted(len(found), "line", "lines"), toolset.Counted(int(end.Files), "file", "files"), toolset.PrintablePath(at.Path), ref)}
	if len(found) == 0 {
		out.Verdict = fmt.Sprintf("nothing found in %s of %s · sandbox %s", toolset.Counted(int(end.Files), "file", "files"), toolset.PrintablePath(at.Path), ref)
	}
	var b strings.Builder
	shown := 0
	base := at.Path + "/"
	if at.Path == "/" {
		base = "/"
	}
	base = strings.TrimPrefix(base, c.Absolute(ctx, ref, ".")+"/") // as all tools take it
	for _, m := range found {
		line := fmt.Sprintf("%s:%d: %s", toolset.PrintablePath(base+m.Rel), m.Line, toolset.Clean([]byte(m.Text)))
		if m.Cut {
			line += " …"
		}
		if n := toolset.Runes(line); shown+n > searchShown {
			out.Notes = append(out.Notes, fmt.Sprintf("only the first %d characters are shown; make pattern, path or glob narrower", searchShown))
			break
		} else {
			shown += n
		}
		b.WriteString(line + "\n")
	}
	if b.Len() > 0 {
		out.Sections = []toolset.Section{{Title: "matches", Body: b.String()}}
	}
	out.Notes = append(out.Notes, partly(&end)...)
	return out, nil
}

// literal makes a pattern of a name that fits nothing else.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// partly says what a search has not seen.
func partly(end *sandbox.SearchEnd) []string {
	var out []string
	switch end.Ended {
	case "limit":
		out = append(out, "there are more; make pattern, path or glob narrower, or raise limit")
	case "time":
		out = append(out, "the search took too long and ended early; make path or glob narrower")
	case "bytes", "entries":
		out = append(out, "there is too much to search at once, and it ended early; make path or glob narrower")
	}
	var passed []string
	for _, p := range []struct {
		n    int64
		what string
	}{{end.Binary, "binary files"}, {end.Closed, "that may not be read"}, {end.Passed, "directories like .git and node_modules"}} {
		if p.n > 0 {
			passed = append(passed, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if passed != nil {
		out = append(out, "passed over: "+strings.Join(passed, ", "))
	}
	if end.Large > 0 {
		out = append(out, fmt.Sprintf("of %d files only the first 64 MiB were searched", end.Large))
	}
	return out
}

// searchError says how to search where the sandbox's agent cannot, or what is wrong
// with the path.
func searchError(ctx context.Context, c *toolset.Call, ref, dir string, err error) error {
	if fault.Is(err, fault.Unsupported) {
		return fault.Wrap(fault.Unsupported, err, "this sandbox was started by an older server, and cannot be searched in").
			WithRemedy("use run_command with grep -rn, or find")
	}
	if e := fault.As(err); e.Code == fault.Invalid && len(e.Fields) == 1 && e.Fields[0].Name != "path" {
		return err
	}
	return c.PathError(ctx, ref, dir, err)
}

// mostWatched bounds the changes of an answer.
const mostWatched = 500

func watchFiles() toolset.Tool {
	return toolset.Tool{
		Name: "watch_files", Title: "Wait for changes of files", ReadOnly: true,
		About: "Wait until something changes in a directory of a sandbox, and list what did: created, modified, deleted, renamed. Changes before the call are not told.",
		Params: []toolset.Param{
			paramSandbox(),
			{Name: "path", Kind: toolset.Text, About: "The directory, default /workspace.", Aliases: []string{"dir", "directory"}},
			{Name: "recursive", Kind: toolset.Boolean, About: "With all that is below. Default true."},
			{Name: "wait_seconds", Kind: toolset.Number, Min: 0.1, Max: toolset.MostWait.Seconds(), About: "Wait so long for the first change, default 30.", Aliases: []string{"wait"}},
		},
		Example: `{"path": "/workspace/src"}`,
		Run:     watchDir,
	}
}

// errSeen ends a watch that has seen enough.
var errSeen = errors.New("seen")

func watchDir(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := files.WatchRequest{Path: orElse(a.Text("path"), "."), Recursive: a.Bool("recursive", true)}
	wait := toolset.Seconds(a.Number("wait_seconds", longestWait.Seconds()))
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	r.Path = c.Absolute(ctx, ref, r.Path)
	here, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	// What comes with the first change, or a moment after it, is one answer.
	quiet := time.AfterFunc(time.Hour, cancel)
	quiet.Stop()
	defer quiet.Stop()
	var b strings.Builder
	n, dropped, begun := 0, 0, false
	end, err := c.Files.WatchFiles(here, c.Caller, ref, r, func(events []sandbox.FileEvent) error {
		if !begun {
			begun = true
			c.Progress.Say("watching " + toolset.PrintablePath(toolset.Clip(r.Path)))
		}
		for _, e := range events {
			if e.Type == sandbox.FileDropped {
				dropped += e.Dropped
				continue
			}
			if n++; n <= mostWatched {
				b.WriteString(changeLine(e) + "\n")
			}
		}
		if n >= mostWatched {
			return errSeen
		}
		if n+dropped > 0 {
			quiet.Reset(settled)
		}
		return nil
	})
	switch {
	case err == nil || errors.Is(err, errSeen):
	case ctx.Err() != nil || here.Err() == nil:
		return nil, c.PathError(ctx, ref, r.Path, err)
	}
	ans := &toolset.Answer{Verdict: fmt.Sprintf("%s in %s · sandbox %s", toolset.Counted(n, "change", "changes"), toolset.PrintablePath(toolset.Clip(r.Path)), ref)}
	if n == 0 && dropped == 0 && end.Reason == "" {
		ans.Verdict = fmt.Sprintf("nothing changed in %s for %s · sandbox %s", toolset.PrintablePath(toolset.Clip(r.Path)), toolset.Took(wait), ref)
	}
	if end.Reason != "" {
		ans.Lines = append(ans.Lines, "the watch ended: "+oneLineOf(end.Detail))
	}
	if dropped > 0 {
		ans.Notes = append(ans.Notes, fmt.Sprintf("at least %d more changes came too quickly to be told; list_files shows how it is now", dropped))
	}
	if n > mostWatched {
		ans.Notes = append(ans.Notes, fmt.Sprintf("only the first %d are listed", mostWatched))
	}
	if b.Len() > 0 {
		ans.Sections = []toolset.Section{{Title: "changes", Body: b.String()}}
	}
	return ans, nil
}

// changeLine is a change in one line.
func changeLine(e sandbox.FileEvent) string {
	line := string(e.Type) + " " + toolset.PrintablePath(e.Path)
	if e.From != "" {
		line += " from " + toolset.PrintablePath(e.From)
	}
	if e.IsDir {
		line += " (a directory)"
	}
	return line
}
