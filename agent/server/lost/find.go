// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lost

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/wire"
)

const (
	maxDepth = 24
	maxNames = 100_000 // of one directory
)

// temporary returns directories whose content is not reported.
func temporary() []string {
	return []string{"/tmp", "/var/tmp", "/run", "/var/run", "/var/cache", "/var/log"}
}

// edited are directories whose files are changed in place. Of others those are looked at in which a file was made, replaced or removed.
func edited() []string { return []string{"/etc", "/root", "/opt", "/srv", "/usr/local"} }

// What it costs to look: budget is what may be spent, as on 10,000 directories.
const (
	budget  = 40_000
	opening = 4
)

// finder looks through one file system.
type finder struct {
	since time.Time
	left  int // of the budget
	dev   uint64
	found wire.Lost
}

// Find looks through the root for what was changed since a time. First it looks where files are edited, and then as far as its budget goes.
func Find(since time.Time) wire.Lost { return find("/", since, budget) }

func find(top string, since time.Time, budget int) wire.Lost {
	f := &finder{since: since, left: budget}
	fd, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return wire.Lost{More: true}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return wire.Lost{More: true}
	}
	f.dev = st.Dev
	for _, path := range edited() {
		f.enter(fd, strings.TrimPrefix(path, "/"), path, 0)
	}
	f.directory(fd, &st, "", 0)
	return f.found
}

// directory looks at what is in the directory fd, whose path is given without a slash at its end.
func (f *finder) directory(fd int, st *unix.Stat_t, path string, depth int) {
	names, err := dirs.Read(fd, maxNames)
	if err != nil || depth > maxDepth {
		f.found.More = true
		return
	}
	names.Sort()
	changed := f.later(st.Mtim)
	look := changed || isEdited(path)
	before := f.found.Entries
	for n := range names.Len() {
		if f.left <= 0 {
			f.found.More = true
			return
		}
		name := string(names.Name(n))
		at := path + "/" + name
		switch {
		case names.IsDir(n):
			if !slices.Contains(edited(), at) { // it was looked at
				f.enter(fd, name, at, depth)
			}
		case look:
			f.left--
			var file unix.Stat_t
			if unix.Fstatat(fd, name, &file, unix.AT_SYMLINK_NOFOLLOW) == nil && f.later(file.Ctim) {
				f.add(at)
			}
		}
	}
	if changed && f.found.Entries == before {
		f.add(path + "/")
	}
}

// enter looks at a directory by its name, which is no link, in another.
func (f *finder) enter(dir int, name, path string, depth int) {
	if slices.Contains(temporary(), path) {
		return
	}
	f.left--
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Dev != f.dev || isLeaf(&st) && !f.later(st.Mtim) && !isEdited(path) {
		return
	}
	f.left -= opening
	fd, err := dirs.Openat2(dir, name, unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return // it is gone, or is none
	}
	defer unix.Close(fd)
	if unix.Fstat(fd, &st) == nil && st.Dev == f.dev {
		f.directory(fd, &st, path, depth+1)
	}
}

// isEdited reports whether a directory is one of those whose files are changed in place, or is below one.
func isEdited(path string) bool {
	return slices.ContainsFunc(edited(), func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// isLeaf reports whether a directory is known to have no others in it: each has a name that leads up to it. Some file systems do not count them.
func isLeaf(st *unix.Stat_t) bool { return st.Nlink == 2 }

func (f *finder) add(path string) {
	f.found.Entries++
	if len(f.found.Some) < wire.MaxLost {
		f.found.Some = append(f.found.Some, path)
	}
}

// later reports whether a time of a file is after the first. The kernel's clock of files is behind by up to a tick.
func (f *finder) later(t unix.Timespec) bool { return time.Unix(t.Unix()).After(f.since) }
