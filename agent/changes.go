// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/internal/printable"
	"sandpit.dev/sandbox"
)

// Track opens a window on the directory dir, absolute and inside: the agent looks at all that is in it,
// whoever may read it. ctx bounds that look only. An older agent is fault.Unsupported. Close the window.
func (c *Client) Track(ctx context.Context, dir string) (*Window, error) {
	if !path.IsAbs(dir) {
		return nil, fault.InvalidField("path", "%q is not absolute", sandbox.Clip(dir, 200))
	}
	s, err := c.call(ctx, &wire.Request{Op: wire.OpChanges, Path: dir}, nil)
	if err != nil {
		return nil, err
	}
	if !s.detach() {
		defer s.close()
		return nil, ctx.Err()
	}
	return &Window{s: s}, nil
}

// Window is a directory as it was. Its methods may be called concurrently.
type Window struct {
	mu   sync.Mutex
	s    *stream // nil: it was closed
	got  sandbox.Changes
	why  string
	fail error
}

// Close has the agent look again, and returns what changed since [Client.Track] returned. Calling it
// twice returns the same.
func (w *Window) Close(ctx context.Context) (sandbox.Changes, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.s; s != nil {
		w.s = nil
		s.attach(ctx)
		defer s.close()
		if w.fail = s.send(wire.Append(nil, wire.End, nil)); w.fail == nil {
			w.got, w.why, w.fail = s.changes()
		} else {
			w.fail = s.refused(w.fail)
		}
	}
	return w.got, w.fail
}

// Why says, after Close, why an answer is not complete, for people; empty: it is.
func (w *Window) Why() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}

// changes reads what the agent says of a window.
func (s *stream) changes() (c sandbox.Changes, why string, err error) {
	size := 0
	for {
		t, p, err := s.next()
		switch {
		case err != nil:
			return sandbox.Changes{}, "", err
		case t == wire.Done:
			var sum wire.Changed
			if err := wire.Decode(p, &sum); err != nil {
				return sandbox.Changes{}, "", s.broken(err.Error())
			}
			if sum.Total < len(c.Files) {
				return sandbox.Changes{}, "", s.broken("it tells more changes than there are")
			}
			slices.SortFunc(c.Files, func(a, b sandbox.FileChange) int { return strings.Compare(a.Path, b.Path) })
			c.Total, c.Complete = sum.Total, sum.Why == ""
			return c, clean(sum.Why, 300), nil
		case t != wire.Item:
			return sandbox.Changes{}, "", s.broken("a frame stands among changes that is none")
		}
		var batch []wire.ChangedFile
		if err := wire.Decode(p, &batch); err != nil {
			return sandbox.Changes{}, "", s.broken(err.Error())
		}
		for _, f := range batch {
			change, ok := changeOf(f)
			if size += len(f.Path); !ok || len(c.Files) >= wire.MaxChanged || size > 3*wire.MaxChangedBytes {
				return sandbox.Changes{}, "", s.broken("a change is none, or there are too many")
			}
			c.Files = append(c.Files, change)
		}
	}
}

// changeOf checks a change.
func changeOf(f wire.ChangedFile) (c sandbox.FileChange, ok bool) {
	switch f.Action {
	case wire.Created, wire.Modified, wire.Deleted:
	default:
		return c, false
	}
	if !isBelow(f.Path) || f.Size < 0 {
		return c, false
	}
	text, escaped := printable.Name(wire.UnescapeName(f.Path))
	return sandbox.FileChange{Path: text, Escaped: escaped, Action: f.Action, Size: f.Size}, true
}

// isBelow reports whether a path from an agent, as the wire has it, leads to something below a directory.
func isBelow(p string) bool {
	if len(p) > 3*wire.MaxPath || strings.IndexByte(p, 0) >= 0 {
		return false
	}
	for name := range strings.SplitSeq(p, "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return true
}
