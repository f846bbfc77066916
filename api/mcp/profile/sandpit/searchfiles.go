// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"path"
	"strings"

	"sandpit.dev/agent"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

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
	dir := orElse(a.Text("path"), sandbox.Workspace)
	o := agent.SearchOptions{Pattern: a.Text("pattern"), Glob: a.Text("glob"), IgnoreCase: a.Bool("ignore_case", false), Limit: int(a.Number("limit", 100))}
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
	at, found, end, err := c.Engine.SearchFiles(ctx, c.Caller, ref, dir, o)
	if fault.Is(err, fault.Invalid) && o.Glob == "" {
		// A file, perhaps: then the search is in its directory, for its name.
		one := o
		one.Glob, one.Depth = literal(path.Base(toolset.Absolute(dir))), 1
		if at1, found1, end1, err1 := c.Engine.SearchFiles(ctx, c.Caller, ref, path.Dir(toolset.Absolute(dir)), one); err1 == nil && end1.Files+end1.Binary > 0 {
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
	base = strings.TrimPrefix(base, sandbox.Workspace+"/") // as all tools take it
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
