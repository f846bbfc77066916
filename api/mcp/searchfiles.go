// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"path"
	"strings"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func searchFiles() tool {
	return tool{
		name: "search_files", title: "Search in files", readOnly: true, idempotent: true,
		about: "Find the lines of text files in a sandbox that match a regular expression (RE2), as path:line: text. Skips binary files, links, .git and node_modules.",
		params: []param{
			{name: "pattern", kind: text, required: true, about: "The expression, held against each line.", aliases: []string{"regex", "query", "regexp"}},
			paramSandbox(),
			{name: "path", kind: text, about: "Directory, default /workspace.", aliases: []string{"dir", "directory"}},
			{name: "glob", kind: text, about: "Only such files, like *.py or src/**/*.ts.", aliases: []string{"include", "file_pattern"}},
			{name: "ignore_case", kind: boolean, about: "Default false.", aliases: []string{"case_insensitive"}},
			{name: "limit", kind: integer, min: 1, max: 2000, about: "Most lines, default 100.", aliases: []string{"max_results"}},
		},
		example: `{"pattern": "def \\w+\\(", "glob": "*.py"}`,
		run:     searchIn,
	}
}

// searchShown bounds the lines of an answer, in characters.
const searchShown = 40_000

func searchIn(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	dir := orElse(a.text("path"), sandbox.Workspace)
	o := agent.SearchOptions{Pattern: a.text("pattern"), Glob: a.text("glob"), IgnoreCase: a.bool("ignore_case", false), Limit: int(a.number("limit", 100))}
	if o.Pattern == "" {
		a.add("pattern", "is empty; list_files lists files")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	at, found, end, err := c.engine.SearchFiles(ctx, c.Caller, ref, dir, o)
	if fault.Is(err, fault.Invalid) && o.Glob == "" {
		// A file, perhaps: then the search is in its directory, for its name.
		one := o
		one.Glob, one.Depth = literal(path.Base(absolute(dir))), 1
		if at1, found1, end1, err1 := c.engine.SearchFiles(ctx, c.Caller, ref, path.Dir(absolute(dir)), one); err1 == nil && end1.Files+end1.Binary > 0 {
			at, found, end, err = at1, found1, end1, nil
		}
	}
	if err != nil {
		return nil, c.searchError(ctx, ref, dir, err)
	}
	out := &answer{verdict: fmt.Sprintf("%s in %s of %s · sandbox %s", counted(len(found), "line", "lines"), counted(int(end.Files), "file", "files"), printablePath(at.Path), ref)}
	if len(found) == 0 {
		out.verdict = fmt.Sprintf("nothing found in %s of %s · sandbox %s", counted(int(end.Files), "file", "files"), printablePath(at.Path), ref)
	}
	var b strings.Builder
	shown := 0
	base := at.Path + "/"
	if at.Path == "/" {
		base = "/"
	}
	base = strings.TrimPrefix(base, sandbox.Workspace+"/") // as all tools take it
	for _, m := range found {
		line := fmt.Sprintf("%s:%d: %s", printablePath(base+m.Rel), m.Line, clean([]byte(m.Text)))
		if m.Cut {
			line += " …"
		}
		if n := runes(line); shown+n > searchShown {
			out.notes = append(out.notes, fmt.Sprintf("only the first %d characters are shown; make pattern, path or glob narrower", searchShown))
			break
		} else {
			shown += n
		}
		b.WriteString(line + "\n")
	}
	if b.Len() > 0 {
		out.sections = []section{{"matches", b.String()}}
	}
	out.notes = append(out.notes, partly(&end)...)
	return out, nil
}

// literal makes a pattern of a name that fits nothing else.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// partly says what a search has not seen.
func partly(end *agent.SearchEnd) []string {
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
func (c *call) searchError(ctx context.Context, ref, dir string, err error) error {
	if fault.Is(err, fault.Unsupported) {
		return fault.Wrap(fault.Unsupported, err, "this sandbox was started by an older server, and cannot be searched in").
			WithRemedy("use run_command with grep -rn, or find")
	}
	if e := fault.As(err); e.Code == fault.Invalid && len(e.Fields) == 1 && e.Fields[0].Name != "path" {
		return err
	}
	return c.pathError(ctx, ref, dir, err)
}
