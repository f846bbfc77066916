// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package merged

import (
	"context"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sandpit.dev/sandbox"
)

// Bounds of a list.
const (
	nameBatch = 256
	maxScan   = 1 << 20 // names that are looked at in each layer
)

// List returns what is in a directory, or in the one that a link leads to, in the order of the names: at most limit
// entries whose names come after one. more reports that there are more.
func (t *Tree) List(ctx context.Context, p, after string, limit int) (dir sandbox.FileInfo, entries []sandbox.FileInfo, more bool, err error) {
	s, err := t.walk(ctx, p, true)
	if err != nil {
		return dir, nil, false, failed(ctx, p, err)
	}
	defer s.close()
	if !s.is(unix.S_IFDIR) {
		return dir, nil, false, failed(ctx, p, unix.ENOTDIR)
	}
	dir = t.describe(&s.found, s.dir, s.name)
	dir.Path = s.path
	in := s.dir
	if s.name != "" {
		if in, err = down(s.dir, s.name, &s.found); err != nil {
			return dir, nil, false, failed(ctx, p, err)
		}
		defer in.close()
	}
	names, more, err := first(ctx, in, after, limit)
	if err != nil {
		return dir, nil, false, failed(ctx, p, err)
	}
	for _, name := range names {
		f, err := look(in, name)
		if err != nil {
			continue // it went away meanwhile
		}
		fi := t.describe(&f, in, name)
		fi.Path = s.path + "/" + name
		if s.path == "/" {
			fi.Path = "/" + name
		}
		entries = append(entries, fi)
	}
	return dir, entries, more, nil
}

// first returns the first of the names of a directory after one, in order. It holds no more than a few times limit.
func first(ctx context.Context, in place, after string, limit int) (names []string, more bool, err error) {
	cut := func() {
		slices.Sort(names)
		if len(names) > limit {
			clear(names[limit:])
			names, more = names[:limit], true
		}
	}
	for layer, fd := range in {
		if fd < 0 {
			continue
		}
		own, err := openDir(fd, ".") // which has a position of its own
		if err != nil {
			return nil, false, err
		}
		dir := os.NewFile(uintptr(own), "directory")
		seen := 0
		for err == nil && seen <= maxScan {
			if err = ctx.Err(); err != nil {
				break
			}
			var batch []os.DirEntry
			batch, err = dir.ReadDir(nameBatch)
			for _, e := range batch {
				if name := e.Name(); name > after && shows(in, layer, name, e.Type()) {
					names = append(names, name)
				}
			}
			if seen += len(batch); len(names) >= 2*limit+nameBatch {
				cut()
			}
		}
		_ = dir.Close()
		if err != nil && err != io.EOF {
			return nil, false, err
		}
		more = more || seen > maxScan
	}
	cut()
	return names, more, nil
}

// shows reports whether a name of a layer is to be seen.
func shows(in place, layer int, name string, kind fs.FileMode) bool {
	var st unix.Stat_t
	if layer == upper {
		return kind&fs.ModeCharDevice == 0 || unix.Fstatat(in[upper], name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || !isWhiteout(&st)
	}
	return in[upper] < 0 || unix.Fstatat(in[upper], name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil
}
