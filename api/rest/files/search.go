// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"path"
	"regexp"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

type findFiles struct {
	byQuery
	Glob  *string `query:"glob" doc:"of names, or with a slash of paths below the directory, where ** stands for any directories; default: all"`
	Depth *int    `query:"depth" doc:"1: only what is in the directory itself; default and most 64"`
	Limit *int    `query:"limit" doc:"most files, 1 to 10000; default 100"`
	After *string `query:"after" doc:"only what comes after this path, below the directory: the last of an answer that was cut goes on with the rest"`
}

// findFiles searches for names.
func (a *API) findFiles(ctx context.Context, c *httpapi.Call, in *findFiles) (v1.FoundFiles, error) {
	p, err := httpapi.Place("", in.Path, true)
	if err != nil {
		return v1.FoundFiles{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	dir, found, end, err := a.Files.SearchFiles(ctx, c.Caller, in.Ref, p, sandbox.SearchFilesOptions{
		User: httpapi.Given(in.User), Glob: httpapi.Given(in.Glob), After: httpapi.Given(in.After), Depth: number(in.Depth), Limit: number(in.Limit),
	})
	if err != nil {
		return v1.FoundFiles{}, byUser(err)
	}
	out := v1.FoundFiles{Path: dir.Path, Files: make([]v1.FileInfo, 0, len(found)), SearchEnd: endOf(end)}
	for i := range found {
		out.Files = append(out.Files, fileOf(found[i].File))
	}
	return out, nil
}

type searchFiles struct {
	byQuery
	Pattern    string  `query:"pattern" doc:"a regular expression (RE2) that each line is held against, or with literal a text"`
	Literal    *bool   `query:"literal" doc:"the pattern is taken as it is"`
	IgnoreCase *bool   `query:"ignore_case" doc:"upper and lower case are the same"`
	Glob       *string `query:"glob" doc:"only files of such names, or with a slash of such paths below the directory, where ** stands for any directories"`
	Depth      *int    `query:"depth" doc:"1: only what is in the directory itself; default and most 64"`
	Limit      *int    `query:"limit" doc:"most lines, 1 to 10000; default 100"`
}

// searchFiles searches in files.
func (a *API) searchFiles(ctx context.Context, c *httpapi.Call, in *searchFiles) (v1.FoundLines, error) {
	p, err := httpapi.Place("", in.Path, true)
	if err != nil {
		return v1.FoundLines{}, err
	}
	if in.Pattern == "" {
		return v1.FoundLines{}, fault.InvalidField("pattern", "is empty").WithRemedy("say what to search for; GET …/find lists files by their names")
	}
	pattern := in.Pattern
	if in.Literal != nil && *in.Literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	ctx, done := c.Bound(ctx)
	defer done()
	dir, found, end, err := a.Files.SearchFiles(ctx, c.Caller, in.Ref, p, sandbox.SearchFilesOptions{
		User: httpapi.Given(in.User), Pattern: pattern, IgnoreCase: in.IgnoreCase != nil && *in.IgnoreCase,
		Glob: httpapi.Given(in.Glob), Depth: number(in.Depth), Limit: number(in.Limit),
	})
	if err != nil {
		return v1.FoundLines{}, byUser(err)
	}
	out := v1.FoundLines{Path: dir.Path, Matches: make([]v1.FoundLine, 0, len(found)), SearchEnd: endOf(end)}
	for _, m := range found {
		out.Matches = append(out.Matches, v1.FoundLine{Path: path.Join(dir.Path, m.Rel), Line: m.Line, Text: m.Text, Cut: m.Cut})
	}
	return out, nil
}

func endOf(e sandbox.SearchEnd) v1.SearchEnd {
	return v1.SearchEnd{Searched: e.Files, Skipped: e.Binary + e.Closed + e.Passed, Ended: e.Ended}
}

// number is a number of a query; one that is out of bounds stays so for who checks it.
func number(n *int) int {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return -1
	}
	return *n
}

type replaceInFiles struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.ReplaceInFiles
}

func (a *API) replaceInFiles(ctx context.Context, c *httpapi.Call, in *replaceInFiles) (v1.FilesReplaced, error) {
	b := &in.Body
	ctx, done := c.Bound(ctx)
	defer done()
	all, err := a.Files.ReplaceInFiles(ctx, c.Caller, in.Ref, b.Files, sandbox.ReplaceFilesOptions{
		User: httpapi.Given(b.User), Pattern: b.Pattern, Replacement: b.Replacement, Regexp: b.Regex, IgnoreCase: b.IgnoreCase,
	})
	if err != nil {
		return v1.FilesReplaced{}, byUser(err)
	}
	out := v1.FilesReplaced{Files: make([]v1.FileReplaced, 0, len(all))}
	for _, f := range all {
		one := v1.FileReplaced{Path: f.Path, Replacements: f.Count}
		switch {
		case f.Err != nil:
			e := fault.As(f.Err)
			one.Code, one.Error, one.Remedy = string(e.Code), e.Message, e.Remedy
			out.Failed++
		case f.Count > 0:
			out.Changed++
			out.Replacements += f.Count
		}
		out.Files = append(out.Files, one)
	}
	return out, nil
}
