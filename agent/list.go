// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// List lists a directory, as EachFile does.
func (c *Client) List(ctx context.Context, path string, o sandbox.ListFilesOptions) (entries []sandbox.FileInfo, truncated bool, err error) {
	truncated, err = c.EachFile(ctx, path, o, func(fi sandbox.FileInfo) error {
		entries = append(entries, fi)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return entries, truncated, nil
}

// EachFile calls each for each entry of a directory in the order of their names (as bytes), and with a
// Depth for each entry of the tree below it in the order of their paths. truncated reports that there are more entries: the
// limit or a bound in bytes, names or time was reached, or each returned ErrEnough. Any other error of each ends the list and
// is returned.
func (c *Client) EachFile(ctx context.Context, path string, o sandbox.ListFilesOptions, each func(sandbox.FileInfo) error) (truncated bool, err error) {
	l := lister{each: each, after: wire.UnescapeName(o.After), limit: o.Limit}
	if l.limit == 0 {
		l.limit = wire.DefaultListSize
	}
	req := &wire.Request{Op: wire.OpList, Path: path, User: o.User, Limit: o.Limit, Beyond: o.After, Compact: true}
	if l.tree = o.Depth > 1; l.tree {
		req.Op, req.Depth = wire.OpTree, o.Depth
	}
	var dir wire.FileInfo
	s, err := c.call(ctx, req, &dir)
	if err != nil {
		if l.tree && fault.Is(err, fault.Unsupported) {
			return false, fault.Wrap(fault.Unsupported, err, "the sandbox's agent is of an earlier build, and lists one directory at a time").
				WithRemedy("stop the sandbox and start it again, or list the directories one by one")
		}
		return false, err
	}
	defer s.close()
	l.dir = dir.Path
	for {
		t, p, err := s.next()
		switch {
		case err != nil:
			return false, err
		case t == wire.Done:
			var end wire.Listing
			if err := wire.Decode(p, &end); err != nil {
				return false, s.broken(err.Error())
			}
			if end.Truncated && l.given == 0 && l.skipped > 0 {
				return false, fault.New(fault.Unsupported, "the sandbox's agent is of an earlier build, and lists a directory from its beginning only").
					WithRemedy("stop the sandbox and start it again, or make an archive of the directory inside")
			}
			return end.Truncated, nil
		case t == wire.Data:
			err = l.compact(p)
		case t == wire.Item && !l.tree: // of an earlier agent
			var batch []wire.FileInfo
			if err := wire.Decode(p, &batch); err != nil {
				return false, s.broken(err.Error())
			}
			for i := range batch {
				if err = l.add(&batch[i]); err != nil {
					break
				}
			}
		default:
			return false, s.broken("a frame stands in a list that is none")
		}
		var broken *wire.FormatError
		switch {
		case errors.As(err, &broken):
			return false, s.broken(broken.Reason)
		case errors.Is(err, sandbox.ErrEnough):
			return true, nil
		case err != nil:
			return false, err
		}
	}
}

// lister hands on the entries of a list.
type lister struct {
	each  func(sandbox.FileInfo) error
	dir   string // its path
	tree  bool
	after string
	limit int

	entries        wire.Entries
	given, skipped int
}

func (l *lister) compact(p []byte) error {
	l.entries.Reset(p)
	var w wire.FileInfo
	for l.entries.Next(&w) {
		if err := l.add(&w); err != nil {
			return err
		}
	}
	return l.entries.Err()
}

func (l *lister) add(w *wire.FileInfo) error {
	if l.given+l.skipped == l.limit {
		return &wire.FormatError{Reason: "it lists more than was asked for"}
	}
	dir := l.dir
	if l.tree {
		if !isBelow(w.Path) || path.Base(w.Path) != w.Name {
			return badFile()
		}
		dir = path.Join(dir, path.Dir(w.Path))
	}
	fi, err := fileInfo(*w, dir)
	if err != nil {
		return err
	}
	if !l.tree && l.after != "" && wire.UnescapeName(fi.Name) <= l.after { // an earlier agent knows no After
		l.skipped++
		return nil
	}
	l.given++
	return l.each(fi)
}

// special returns the bits of a mode that are no permissions.
func special(mode uint32) (m fs.FileMode) {
	for bit, is := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= is
		}
	}
	return m
}

// isAccountName reports whether an agent's name of an owner is one, or none.
func isAccountName(name string) bool {
	if len(name) > wire.MaxAccountName {
		return false
	}
	for _, r := range name {
		if r > ' ' && r < 0x7f && r != '/' { // all but few
			continue
		}
		if r == utf8.RuneError || r == ' ' || r == '/' || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// areAttributes reports whether an agent's attributes of a file can be such.
func areAttributes(all map[string]string) bool {
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
		if key == "" || len(key) > wire.MaxAttributeKey || !utf8.ValidString(key) || !utf8.ValidString(value) || strings.ContainsRune(key+value, 0) {
			return false
		}
	}
	return size <= wire.MaxAttributes
}

// Change changes mode, owner, group and attributes of a file, or with Recursive of a tree. No link is followed: one at
// the path's end, or on its way, is fault.Invalid. A change of a tree tells what it could not change; if ctx ends, a
// part is changed.
func (c *Client) Change(ctx context.Context, path string, o sandbox.ChangeFileOptions) (sandbox.FileChanged, error) {
	w := &wire.Change{Owner: o.Owner, Group: o.Group, Attributes: o.Attributes, Remove: o.Remove, Replace: o.Replace, Recursive: o.Recursive}
	if o.Mode != nil {
		bits := modeBits(*o.Mode)
		w.Mode = &bits
	}
	var got wire.FileChanged
	if err := c.ask(ctx, &wire.Request{Op: wire.OpChange, Path: path, User: o.User, Change: w}, &got); err != nil {
		return sandbox.FileChanged{}, err
	}
	fi, err := fileInfo(got.File, "")
	if err != nil {
		return sandbox.FileChanged{}, err
	}
	switch got.Ended {
	case "", wire.EndedByTime, wire.EndedByEntries:
	default:
		return sandbox.FileChanged{}, badFile()
	}
	sum := packed(wire.Packed{Left: got.Left, LeftAll: got.LeftAll})
	return sandbox.FileChanged{File: fi, Changed: max(0, got.Changed), Left: sum.Left, LeftAll: sum.LeftAll, Ended: got.Ended}, nil
}
