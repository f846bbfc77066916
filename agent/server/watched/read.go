// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package watched

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

func errRemoved(dir string) error {
	return fault.New(fault.NotFound, "the directory %.200q was removed or moved away", dir)
}

// errMany is a tree that is too large, and why.
type errMany string

func (e errMany) Error() string { return string(e) }

const (
	manyDirs    errMany = "there are more than 4096 directories, which is the most that are watched in one sandbox"
	manyLevels  errMany = "its directories lie more than 100 deep"
	manyEntries errMany = "it has more files than are looked at"
	manyOfHost  errMany = "the host watches no more directories for its root"
)

// fault is it to the caller.
func (e errMany) fault(dir string) error {
	f := fault.New(fault.Exhausted, "the directory %.200q cannot be watched with all that is below: %s", dir, string(e))
	if e == manyOfHost {
		return f.WithRemedy("close watches on other sandboxes, or raise the host's fs.inotify.max_user_watches")
	}
	return f.WithRemedy("watch a directory below it, or the directory alone")
}

// refused is the error of a directory that cannot be watched.
func refused(dir string, err error) error {
	if many, is := errors.AsType[errMany](err); is {
		return many.fault(dir)
	}
	switch err {
	case unix.ENOENT:
		return fault.Wrap(fault.NotFound, err, "there is no directory %.200q", dir)
	case unix.ENOTDIR:
		return fault.InvalidField("path", "%.200q is not a directory", dir)
	case unix.ELOOP:
		return fault.InvalidField("path", "%.200q has a symbolic link in it, which a watch does not follow", dir).
			WithRemedy("name the directory that the link leads to")
	case dirs.ErrPseudo, dirs.ErrHidden:
		return fault.InvalidField("path", "%.200q is %s, where changes are not told", dir, err)
	case unix.EACCES, unix.EPERM:
		return fault.Wrap(fault.Denied, err, "the directory %.200q may not be read", dir)
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM:
		return fault.Wrap(fault.Exhausted, err, "the directory %.200q cannot be watched: the sandbox's agent has no more open files or memory", dir)
	}
	return fault.Wrap(fault.Internal, err, "the directory %.200q cannot be watched", dir)
}

// begin puts a watch onto its directory. What is queued until then is not for it.
func (l *live) begin(w *Watch) error {
	n, err := l.reach(w.dir, all)
	if err == nil && w.recursive {
		l.entries = 0
		err = l.below(n, w.dir, nothing)
	}
	if err != nil {
		return refused(w.dir, err)
	}
	w.start = l.tail()
	w.top = n
	n.watches = append(n.watches, w)
	return nil
}

// reach watches a directory, and those above it for its end.
func (l *live) reach(dir string, mask uint32) (*node, error) {
	at := l.tail()
	n := l.top
	for rest, here := strings.Trim(dir, "/"), ""; ; {
		name, after, more := strings.Cut(rest, "/")
		if here == "" && n == l.top && l.top.wd == none || rest == "" && n == l.top {
			m := uint32(above)
			if rest == "" {
				m = mask
			}
			wd, err := l.watchPath("/", m)
			if err != nil {
				return nil, err
			}
			l.top.wd, l.top.at = wd, at
			l.nodes[wd] = l.top
		}
		if rest == "" {
			return n, nil
		}
		here += "/" + name
		m := uint32(above)
		if !more {
			m = mask
		}
		wd, err := l.watchPath(here, m)
		if err != nil {
			return nil, err
		}
		if l.nodes[wd] == nil && len(l.nodes) >= MaxDirs {
			_, _ = unix.InotifyRmWatch(l.fd, uint32(wd))
			return nil, manyDirs
		}
		if n, err = l.put(place{n, name}, wd, at); err != nil || !more {
			return n, err
		}
		rest = after
	}
}

// watchPath has the kernel watch the directory of a path.
func (l *live) watchPath(p string, mask uint32) (wd int32, err error) {
	l.root.Do(func() {
		var fd int
		if fd, err = l.root.Open(p); err != nil {
			return
		}
		defer unix.Close(fd)
		wd, err = l.watchOpen(fd, mask)
	})
	return wd, err
}

// watchOpen has the kernel watch an open directory. It runs within Do.
func (l *live) watchOpen(fd int, mask uint32) (int32, error) {
	wd, err := unix.InotifyAddWatch(l.fd, "/proc/self/fd/"+strconv.Itoa(fd), mask)
	if err == unix.ENOSPC {
		return none, manyOfHost
	}
	return int32(wd), err
}

// below watches all directories below one.
func (l *live) below(n *node, dir string, tell since) error {
	var fd int
	var err error
	l.root.Do(func() { fd, err = l.root.Open(path.Clean("/" + dir)) })
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return l.inside(n, fd, dir, tell, 1)
}

// arrive watches a directory that is new in another one, with all below it, and tells what of it is
// new. One that is not there is no error: it is looked for again when all that is queued was read.
func (l *live) arrive(p place, tell since) {
	l.entries = 0
	err := l.enterPath(p, tell)
	switch {
	case err == nil:
	case dirs.Gone(err):
		if len(l.todo) < maxTodo {
			l.todo = append(l.todo, missed{place: p})
		} else {
			l.missing(p.dir)
		}
	default:
		l.unwatched(p.dir, err)
	}
}

// unwatched tells that a part of a directory is not watched, and why.
func (l *live) unwatched(n *node, err error) {
	switch many, is := errors.AsType[errMany](err); {
	case is:
		for _, w := range l.seers(n) {
			if w.recursive {
				w.end(many.fault(w.dir))
			}
		}
	case err == dirs.ErrHidden, err == dirs.ErrPseudo, err == unix.EXDEV:
	default:
		l.missing(n)
	}
}

// missing tells the watches that see a directory that something may be missing.
func (l *live) missing(n *node) {
	for _, w := range l.seers(n) {
		w.lose(1)
	}
}

func (l *live) enterPath(p place, tell since) error {
	at := l.tail()
	fd, wd := -1, int32(none)
	var err error
	l.root.Do(func() {
		var dir int
		if dir, err = l.root.Open("/" + p.dir.path()); err != nil {
			return
		}
		defer unix.Close(dir)
		fd, wd, err = l.enter(dir, p.name)
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return l.into(p, fd, wd, at, tell, 1)
}

// enter opens and watches a directory that lies in another one. It runs within Do.
func (l *live) enter(dir int, name string) (fd int, wd int32, err error) {
	if fd, err = l.root.Enter(dir, name); err != nil {
		return -1, none, err
	}
	if wd, err = l.watchOpen(fd, all); err != nil {
		_ = unix.Close(fd)
		return -1, none, err
	}
	return fd, wd, nil
}

// into puts a directory that is watched into the tree, and goes on with what is in it.
func (l *live) into(p place, fd int, wd int32, at int64, tell since, level int) error {
	if l.nodes[wd] == nil && len(l.nodes) >= MaxDirs {
		_, _ = unix.InotifyRmWatch(l.fd, uint32(wd))
		return manyDirs
	}
	n, err := l.put(p, wd, at)
	if err != nil {
		l.confused()
		return nil
	}
	return l.inside(n, fd, p.path(), tell, level)
}

// inside watches the directories in one that is open, and tells what is in it.
func (l *live) inside(n *node, fd int, dir string, tell since, level int) error {
	if level >= maxDepth {
		return manyLevels
	}
	names, err := dirs.Read(fd, maxEntries-l.entries)
	switch {
	case err == dirs.ErrMany:
		return manyEntries
	case err == unix.ENOENT:
		return nil
	case err != nil:
		return err
	}
	l.entries += names.Len()
	if tell != nothing {
		l.tellNames(n, fd, dir, names, tell)
	}
	for i := range names.Len() {
		if !names.Dir(i) {
			continue
		}
		name := string(names.Name(i))
		at := l.tail()
		sub, wd := -1, int32(none)
		l.root.Do(func() { sub, wd, err = l.enter(fd, name) })
		if err == nil {
			err = l.into(place{n, name}, sub, wd, at, tell, level+1)
			_ = unix.Close(sub)
		}
		if _, many := errors.AsType[errMany](err); many {
			return err
		}
		switch {
		case err == nil:
		case !dirs.Gone(err):
			l.unwatched(n, err)
		case len(l.todo) < maxTodo:
			l.todo = append(l.todo, missed{place: place{n, name}})
		default:
			l.missing(n)
		}
	}
	return nil
}

// tellNames tells what is in a directory that was made and filled before it was watched. The events
// about what was made since it is watched are still to be read.
func (l *live) tellNames(n *node, fd int, dir string, names *dirs.Names, from since) {
	if l.names+names.Len() <= maxSeen {
		if n.seen == nil {
			n.seen = make(map[string]struct{}, names.Len())
			l.seen = append(l.seen, n)
		}
		l.names += names.Len()
		n.until = l.tail()
	}
	ws := l.seers(n)
	for i := range names.Len() {
		name := string(names.Name(i))
		if from != everything && !l.isNew(fd, name, from) {
			continue
		}
		if n.seen != nil {
			n.seen[name] = struct{}{}
		}
		l.tell(ws, &event{kind: wire.Created, path: dir + "/" + name, dir: names.IsDir(i)})
	}
}

// since is of what a directory holds that which is told: what changed at that time or later, in ns by
// the clock of files.
type since int64

const (
	nothing    since = -1
	everything since = 0
)

// isNew reports whether a file was changed since.
func (l *live) isNew(fd int, name string, from since) (is bool) {
	l.root.Do(func() {
		var st unix.Statx_t
		err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_CTIME, &st)
		is = err == nil && st.Ctime.Sec*1e9+int64(st.Ctime.Nsec) >= int64(from)
	})
	return is
}

// forgetSeen forgets the names whose events were read.
func (l *live) forgetSeen() {
	l.seen = slices.DeleteFunc(l.seen, func(n *node) bool {
		over := l.pos >= n.until
		if over {
			n.seen = nil
		}
		return over
	})
	if len(l.seen) == 0 {
		l.names = 0
	}
}

// confused marks the tree as one to read anew, since it is not as the disk.
func (l *live) confused() {
	l.resting = true
	for _, w := range l.watches {
		w.lose(1)
	}
}

// anew reads the trees of all watches after events were lost.
func (l *live) anew() {
	for { // what is queued is older than what will be read
		n, err := unix.Read(l.fd, l.buf)
		if err != nil || n <= 0 {
			break
		}
		l.pos += int64(n)
	}
	l.resting = false
	old := l.nodes
	l.clear()
	for _, w := range l.watches {
		if w.ended != nil {
			continue
		}
		was := w.top.wd
		w.top.watches, w.top = nil, nil
		start := w.start
		switch err := l.begin(w); {
		case fault.Is(err, fault.NotFound), fault.Is(err, fault.Invalid), err == nil && w.top.wd != was:
			l.leave(w)
			w.end(errRemoved(w.dir))
		case err != nil:
			w.end(err)
		default:
			w.start = start
		}
		w.lose(1) // what happened since they were told first, too
	}
	for wd := range old {
		if l.nodes[wd] == nil {
			_, _ = unix.InotifyRmWatch(l.fd, uint32(wd))
		}
	}
}
