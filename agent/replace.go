// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"sandpit.dev/agent/wire"
	"sandpit.dev/sandbox"
)

// Replace replaces text in files, and returns what became of each, in their order. Each is replaced whole or
// stays as it was. If ctx ends, it has been done in a part of the files.
func (c *Client) Replace(ctx context.Context, files []string, o sandbox.ReplaceFilesOptions) ([]sandbox.FileReplaced, error) {
	s, err := c.call(ctx, &wire.Request{Op: wire.OpReplace, User: o.User, Replace: &wire.Replace{
		Files: files, Pattern: o.Pattern, Replacement: o.Replacement, Regexp: o.Regexp, Fold: o.IgnoreCase,
	}}, nil)
	if err != nil {
		return nil, err
	}
	defer s.close()
	out := make([]sandbox.FileReplaced, 0, len(files))
	for {
		t, p, err := s.next()
		switch {
		case err != nil:
			return nil, err
		case t == wire.Done && len(out) == len(files):
			return out, nil
		case t != wire.Item:
			return nil, s.broken("it does not say what became of each file")
		}
		var batch []wire.Replaced
		if err := wire.Decode(p, &batch); err != nil {
			return nil, s.broken(err.Error())
		}
		for _, w := range batch {
			if len(out) == len(files) || w.Path != files[len(out)] {
				return nil, s.broken("it replaces in a file that was not named")
			}
			one := sandbox.FileReplaced{Path: w.Path, Count: max(0, w.Count)}
			if w.Error != nil {
				one.Count, one.Err = 0, s.told(w.Error)
			}
			out = append(out, one)
		}
	}
}
