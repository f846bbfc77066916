// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/printable"
)

// item is one path of the answer while it is put together.
type item struct {
	before, now bool
	unclear     bool   // before is not certain
	was, is     string // the keys of the files
	wasDir      bool
	touched     bool
	stat        unix.Statx_t
}

// diff turns a window into the difference of the tree: what each affected path
// was, from the events, and what it is, from the file system.
//
// It opens directories by handle, so that neither a link nor a later rename can
// lead it elsewhere, looks names up without following them, and leaves aside
// whatever lies on another mount.
type diff struct {
	w     *window
	root  int    // the overlay's root
	mount uint64 // its mount
	lower []string
	base  string // what the kernel calls the root, to be cut off of paths
	dir   string // the tracked directory, relative to the root; "" is the root itself
	max   int

	items  map[string]*item
	byPath map[string]*node // where the moved directories are now
	walked int
	bytes  int // of the paths in items
	handle handle
	// patience is how long it may still wait for the kernel; none where others wait meanwhile.
	patience time.Duration

	lost      loss
	truncated bool
}

func (d *diff) run(ctx context.Context) (Changes, error) {
	d.w.finish()
	if len(d.w.entries) == 0 && len(d.w.touched) == 0 {
		return Changes{Complete: d.whyIncomplete() == nil, Truncated: d.w.full}, nil
	}
	if err := d.start(); err != nil {
		return Changes{}, err
	}
	d.resolveRenames()
	d.items = make(map[string]*item)
	for _, n := range d.w.moved {
		if d.locate(n); n.place.alive {
			if d.byPath == nil {
				d.byPath = make(map[string]*node)
			}
			d.byPath[n.place.now] = n
		}
	}
	var done map[*node]bool
	for i, e := range d.w.entries {
		if err := ctx.Err(); err != nil {
			return Changes{}, err
		}
		// The entries of one directory together, so that it is opened once.
		if done[e.dir] || i > 0 && d.w.entries[i-1].dir == e.dir {
			continue
		}
		if done == nil {
			done = make(map[*node]bool)
		}
		done[e.dir] = true
		d.directory(e.dir)
	}
	for _, n := range d.w.touched {
		d.attributes(n)
	}
	for _, n := range d.w.moved {
		if err := ctx.Err(); err != nil {
			return Changes{}, err
		}
		d.walkMoved(n)
	}
	return d.answer(), nil
}

// start learns what the kernel calls the root.
func (d *diff) start() error {
	var st unix.Statx_t
	if err := unix.Statx(d.root, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return err
	}
	d.mount = st.Mnt_id
	base, err := pathOf(d.root)
	if err != nil {
		return err
	}
	d.base = strings.TrimSuffix(base, "/")
	return nil
}

// inside returns a path relative to the tracked directory, of a path relative to the root.
func (d *diff) inside(path string) (string, bool) {
	if d.dir == "" {
		return path, path != ""
	}
	rest, ok := strings.CutPrefix(path, d.dir)
	if !ok || len(rest) < 2 || rest[0] != '/' {
		return "", false
	}
	return rest[1:], true
}

// holds reports whether names in the directory at path are inside.
func (d *diff) holds(path string) bool {
	return d.dir == "" || path == d.dir || strings.HasPrefix(path, d.dir) && path[len(d.dir)] == '/'
}

// directory adds the entries of one directory to the answer.
func (d *diff) directory(n *node) {
	fd := d.locateOpen(n)
	if fd >= 0 {
		defer unix.Close(fd)
	}
	before, hadBefore := d.before(n)
	hadBefore = hadBefore && d.holds(before)
	hasNow := n.place.alive && d.holds(n.place.now)
	if !hadBefore && !hasNow {
		return
	}
	for _, e := range n.names {
		is := item{}
		exists := fd >= 0 && d.look(fd, e.name, &is)
		was, unclear := e.before == present, e.before == unclear
		if e.before == unsaid {
			// Nothing made, took or replaced the name: what was written to is
			// there before and after, or it is a file without this name by now.
			if !exists || !is.touched {
				continue
			}
			was, e.was, e.isDir = true, d.w.nodes[is.is], false
		}
		if hadBefore && (was || unclear && exists) {
			it := d.item(join(before, e.name))
			it.before, it.unclear, it.wasDir = true, unclear, e.isDir
			if e.was != nil {
				it.was = e.was.key
			}
		}
		if hasNow && exists {
			d.item(join(n.place.now, e.name)).set(&is)
		}
	}
}

// attributes adds a directory whose own mode, owner, times or xattrs changed.
func (d *diff) attributes(n *node) {
	d.locate(n)
	before, ok := d.before(n)
	if !ok || !n.place.alive {
		return // made or removed in this window: listed for that
	}
	if _, in := d.inside(n.place.now); in {
		is := item{is: n.key, touched: true}
		is.stat.Mode = unix.S_IFDIR
		d.item(n.place.now).set(&is)
	}
	if _, in := d.inside(before); in {
		it := d.item(before)
		it.before, it.was, it.wasDir = true, n.key, true
	}
}

// look fills is from the name as it is now, and reports whether it exists.
func (d *diff) look(dirfd int, name string, is *item) bool {
	const want = unix.STATX_TYPE | unix.STATX_SIZE | unix.STATX_MTIME | unix.STATX_CTIME | unix.STATX_MNT_ID
	err := unix.Statx(dirfd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, want, &is.stat)
	if err == nil && is.stat.Mnt_id == d.mount {
		if err = d.handle.read(dirfd, name); err == nil {
			is.is = string(d.handle.bytes())
			if n := d.w.nodes[is.is]; n != nil {
				is.touched = d.changed(n, &is.stat)
			}
			return true
		}
	}
	// Gone is an answer. Anything else hides one: a mount on the name above all.
	switch {
	case err == nil:
		d.lost.because(errors.New("a mount lies on a name"))
	case !errors.Is(err, unix.ENOENT):
		d.lost.becausef(err, "cannot look at the name %.80q", name)
	}
	return false
}

// changed reports whether the events on a file mean a change.
func (d *diff) changed(n *node, st *unix.Statx_t) bool {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return n.content&unix.FAN_ATTRIB != 0 // a fifo is written to without changing
	}
	if n.content&(unix.FAN_MODIFY|unix.FAN_ATTRIB) != 0 {
		return true
	}
	// Opened for writing and closed: a write through a mapping sets both times;
	// the copy from a lower layer, which an open alone makes, sets only ctime.
	return n.content&unix.FAN_CLOSE_WRITE != 0 && since(st.Mtime, d.w.begin) && since(st.Ctime, d.w.begin)
}

func since(t unix.StatxTimestamp, begin unix.Timespec) bool {
	return t.Sec > begin.Sec || t.Sec == begin.Sec && int64(t.Nsec) >= begin.Nsec
}

// item returns the item of a path relative to the root.
func (d *diff) item(path string) *item {
	it := d.items[path]
	if it != nil {
		return it
	}
	it = &item{}
	// Long paths of many files would be a multiple of the window.
	if d.bytes += len(path); d.bytes > d.w.limit {
		d.truncated = true
		d.lost.because(errors.New("the paths outgrow the window's memory"))
		return it
	}
	d.items[path] = it
	return it
}

func (it *item) set(is *item) {
	it.now, it.is, it.stat = true, is.is, is.stat
	it.touched = it.touched || is.touched
}

// whyIncomplete returns the first reason why the answer may not be whole, nil where it is.
func (d *diff) whyIncomplete() error {
	return cmp.Or(d.w.lost.reason, d.lost.reason)
}

// answer lists the paths that differ.
func (d *diff) answer() Changes {
	c := Changes{Complete: d.whyIncomplete() == nil, Truncated: d.w.full || d.truncated}
	paths := make([]string, 0, len(d.items))
	for path, it := range d.items {
		same := it.before && it.now && it.was == it.is && !it.touched && !it.unclear
		if _, in := d.inside(path); in && !same && (it.before || it.now) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	if c.Total = len(paths); len(paths) > d.max {
		paths, c.Truncated = paths[:d.max], true
	}
	c.Files = make([]Change, 0, len(paths))
	for _, path := range paths {
		it := d.items[path]
		rel, _ := d.inside(path)
		ch := Change{Action: Modified}
		ch.Path, ch.Escaped = printable.Name(rel)
		switch {
		case !it.before:
			ch.Action = Created
		case !it.now:
			ch.Action = Deleted
			if it.wasDir {
				ch.Type = Dir
			}
		}
		if it.now {
			ch.Type, ch.Size = kind(&it.stat)
		}
		c.Files = append(c.Files, ch)
	}
	return c
}

func kind(st *unix.Statx_t) (Type, int64) {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File, int64(st.Size)
	case unix.S_IFDIR:
		return Dir, 0
	case unix.S_IFLNK:
		return Symlink, 0
	}
	return Other, 0
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
