// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"path"
	"strings"
	"unicode/utf8"

	"sandpit.dev/agent/wire"
	"sandpit.dev/sandbox"
)

// Search looks for lines, or files, below a directory, in the order of their paths. It follows no
// link and skips directories of other programs (.git, node_modules). It takes some seconds at
// most: End reports what it has not searched.
func (c *Client) Search(ctx context.Context, path string, o sandbox.SearchFilesOptions) (dir sandbox.FileInfo, found []sandbox.FileMatch, end sandbox.SearchEnd, err error) {
	limit := o.Limit
	if limit == 0 {
		limit = wire.DefaultSearchSize
	}
	var w wire.FileInfo
	s, err := c.call(ctx, &wire.Request{Op: wire.OpSearch, Path: path, User: o.User, Search: &wire.Search{
		Pattern: o.Pattern, Glob: o.Glob, Fold: o.IgnoreCase, Depth: o.Depth, Limit: o.Limit, After: o.After,
	}}, &w)
	if err != nil {
		return dir, nil, end, err
	}
	defer s.close()
	if dir, err = fileInfo(w, ""); err != nil {
		return dir, nil, end, err
	}
	for bytes := 0; ; {
		t, p, err := s.next()
		switch {
		case err != nil:
			return dir, nil, end, err
		case t == wire.Done:
			var sum wire.Searched
			if err := wire.Decode(p, &sum); err != nil {
				return dir, nil, end, s.broken(err.Error())
			}
			switch sum.Ended {
			case "", wire.EndedByLimit, wire.EndedByTime, wire.EndedByBytes, wire.EndedByEntries:
			default:
				return dir, nil, end, s.broken("it ended a search for no reason")
			}
			return dir, found, sandbox.SearchEnd{
				Files: max(0, sum.Files), Binary: max(0, sum.Binary), Closed: max(0, sum.Closed), Large: max(0, sum.Large), Passed: max(0, sum.Passed), Ended: sum.Ended,
			}, nil
		case t != wire.Item:
			return dir, nil, end, s.broken("a frame stands among what was found that is none")
		}
		if bytes += len(p); bytes > 2*wire.MaxFoundBytes { // an earlier agent has no such bound
			return dir, found, sandbox.SearchEnd{Files: int64(len(found)), Ended: wire.EndedByLimit}, nil
		}
		var batch []wire.Found
		if err := wire.Decode(p, &batch); err != nil {
			return dir, nil, end, s.broken(err.Error())
		}
		if len(found)+len(batch) > limit {
			return dir, nil, end, s.broken("it finds more than was asked for")
		}
		for _, f := range batch {
			m, err := match(f, dir.Path, o.Pattern != "")
			if err != nil {
				return dir, nil, end, err
			}
			found = append(found, m)
		}
	}
}

// match checks one finding below dir.
func match(f wire.Found, dir string, line bool) (sandbox.FileMatch, error) {
	m := sandbox.FileMatch{Rel: f.Path, Line: f.Line, Text: f.Text, Cut: f.Cut}
	if len(f.Path) > 3*wire.MaxPath || strings.IndexByte(f.Path, 0) >= 0 {
		return m, badFile()
	}
	for name := range strings.SplitSeq(f.Path, "/") {
		if name == "" || name == "." || name == ".." {
			return m, badFile()
		}
	}
	if line {
		if f.Line < 1 || f.File != nil || len(f.Text) > wire.MaxSearchText || !utf8.ValidString(f.Text) || strings.Contains(f.Text, "\n") {
			return m, badFile()
		}
		return m, nil
	}
	if f.File == nil || f.Line != 0 || f.Text != "" || f.File.Name != path.Base(f.Path) {
		return m, badFile()
	}
	var err error
	m.File, err = fileInfo(*f.File, path.Join(dir, path.Dir(f.Path)))
	return m, err
}
