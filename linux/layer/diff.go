// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A Point is the id of a layer, as it is now, or of a snapshot. "" is the image alone,
// on which nothing was changed.
type Point string

// Diff returns the difference of the trees that are seen inside at two points, both on
// the image whose root directory is image: each path that is in only one of them, and
// each that is in both and differs in type, content, mode, owner, modification
// time or extended attributes; of a directory neither the time nor what is in it
// counts, which is listed for itself. The root directory is not listed. At most limit
// changes are given, and all are counted.
//
// The cost grows with the two layers and with what differs, and not with the image. It
// holds few descriptors, and memory for the answer. Nothing is followed out of the
// trees. A layer that is written to meanwhile shows any mixture of before and after.
// Errors: Invalid, NotFound.
func (s *Store) Diff(ctx context.Context, image *os.File, from, to Point, limit int) (Changes, error) {
	for _, p := range []Point{from, to} {
		if p == "" {
			continue
		}
		if err := checkID(string(p)); err != nil {
			return Changes{}, err
		}
	}
	leave, err := s.enter()
	if err != nil {
		return Changes{}, err
	}
	defer leave()
	d := &differ{ctx: ctx, list: changeList{limit: limit}}
	defer d.close()
	if err := d.open(s, image, from, to); err != nil {
		return Changes{}, err
	}
	err = d.run()
	changes := d.list.changes()
	if d.moved || errors.Is(err, errMoved) {
		changes.Complete, err = false, nil
	}
	if err != nil && ctx.Err() == nil {
		err = failed(err, "what is in %q and %q cannot be compared", from, to)
	}
	if err != nil {
		return Changes{}, err
	}
	return changes, nil
}

// A differ goes through up to three trees at once: the two layers, and the image,
// which both are upon.
type differ struct {
	ctx    context.Context
	trees  [3]*chain // layer, layer, image; nil where there is none
	since  int64     // what changed before that time is the same in both layers, see common
	levels []level
	path   []byte // of the last level, without a slash at the end
	list   changeList
	moved  bool
	buf    [2][]byte // of contents that are compared
}

const imageTree = 2

// view says what one side has of a directory.
type view struct {
	layer bool // there is one in the layer
	image bool // the one in the image is seen, through the layer's where there is one
}

// level is a directory on the way.
type level struct {
	sub
	// tree is which of the trees is being listed, past the last when all were: a name
	// is looked at when it comes up in the first of them that has it.
	tree    int
	listing listing
	subs    []sub
	parent  int // length of the path above
}

// sub is a directory that is, or is still to be, gone into.
type sub struct {
	name  string
	sides [2]view
}

// sees reports whether a tree has a part in it.
func (s *sub) sees(tree int) bool {
	if tree == imageTree {
		return s.sides[0].image || s.sides[1].image
	}
	return s.sides[tree].layer
}

// entry is what one side has under a name.
type entry struct {
	exists  bool
	inLayer bool
	stat    unix.Stat_t
}

func (e *entry) is(kind uint32) bool { return e.exists && e.stat.Mode&unix.S_IFMT == kind }

func (d *differ) open(s *Store, image *os.File, from, to Point) (err error) {
	if d.trees[imageTree], err = openChain(int(image.Fd()), "."); err != nil {
		return failed(err, "the image cannot be read")
	}
	top := level{}
	var fds [2]int
	for i, p := range []Point{from, to} {
		top.sides[i].image = true
		if p == "" {
			continue
		}
		if fds[i], _, err = s.openSource(string(p)); err != nil {
			return err
		}
		defer unix.Close(fds[i])
		if d.trees[i], err = openChain(fds[i], "upper"); err != nil {
			return failed(err, "%s cannot be read", p)
		}
		top.sides[i].layer = true
	}
	if from != "" && to != "" && from != to {
		d.since = common(fds[0], fds[1])
	}
	d.levels = []level{top}
	return nil
}

func (d *differ) close() {
	for _, tree := range d.trees {
		if tree != nil {
			tree.close()
		}
	}
}

func (d *differ) run() error {
	buf := make([]byte, readSize)
	for {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		l := &d.levels[len(d.levels)-1]
		var err error
		switch n := len(l.subs); {
		case n > 0:
			next := l.subs[n-1]
			l.subs = l.subs[:n-1]
			err = d.down(next)
		case l.tree > imageTree && len(d.levels) == 1:
			return nil
		case l.tree > imageTree:
			err = d.up()
		case !l.lists():
			l.tree++
		default:
			err = d.part(l, buf)
		}
		if err != nil {
			return err
		}
	}
}

// lists reports whether the names in the current tree matter. Those of the image alone
// do not where both sides see them.
func (l *level) lists() bool {
	if l.tree == imageTree {
		return l.sides[0].image != l.sides[1].image
	}
	return l.sides[l.tree].layer
}

// part compares what is in the next part of a listing.
func (d *differ) part(l *level, buf []byte) error {
	names, err := l.listing.next(d.trees[l.tree].fd(), buf, len(d.levels))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		l.tree++
		l.listing = listing{}
	}
	for _, name := range names {
		if err := d.compare(l, name); err != nil {
			return err
		}
	}
	return nil
}

// down goes into a directory, in each tree that has it and where it matters.
func (d *differ) down(to sub) error {
	for i, tree := range d.trees {
		if !to.sees(i) {
			continue
		}
		switch err := tree.down(to.name); err {
		case nil:
		case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
			// It went away meanwhile; what was in it is not told.
			d.moved = true
			for j, tree := range d.trees[:i] {
				if to.sees(j) {
					if _, err := tree.up(); err != nil {
						return err
					}
				}
			}
			return nil
		default:
			return err
		}
		if i != imageTree && isOpaque(tree.fd()) {
			to.sides[i].image = false
		}
	}
	d.levels = append(d.levels, level{sub: to, parent: len(d.path)})
	d.path = append(append(d.path, '/'), to.name...)
	return nil
}

// up goes back.
func (d *differ) up() error {
	last := &d.levels[len(d.levels)-1]
	back := &d.levels[len(d.levels)-2]
	for i, tree := range d.trees {
		if !last.sees(i) {
			continue
		}
		opened, err := tree.up()
		if err != nil {
			return err
		}
		if opened && back.tree == i {
			if err := back.listing.resume(tree.fd()); err != nil {
				return err
			}
		}
	}
	d.path = d.path[:last.parent]
	d.levels = d.levels[:len(d.levels)-1]
	return nil
}

// compare looks at a name that is in the current tree, unless it was in an earlier one.
func (d *differ) compare(l *level, name string) error {
	var below entry
	var sides [2]entry
	for i := range sides {
		seen, err := d.look(l, i, name, &sides[i])
		if err != nil {
			return err
		}
		if seen && i < l.tree {
			return nil
		}
	}
	if l.sides[0].image || l.sides[1].image {
		if err := lookAt(d.trees[imageTree].fd(), name, &below); err != nil {
			return err
		}
	}
	next := sub{name: name}
	for i := range sides {
		isDir := sides[i].is(unix.S_IFDIR)
		next.sides[i].layer = sides[i].inLayer && isDir
		if !sides[i].inLayer && l.sides[i].image {
			sides[i] = below
			isDir = below.is(unix.S_IFDIR)
		}
		next.sides[i].image = l.sides[i].image && isDir && below.is(unix.S_IFDIR)
	}
	if err := d.judge(name, l, &sides); err != nil {
		return err
	}
	if next.sides[0] != next.sides[1] || next.sides[0].layer {
		l.subs = append(l.subs, next)
	}
	return nil
}

// look finds a name in the layer of one side. A whiteout is there and does not exist.
func (d *differ) look(l *level, side int, name string, e *entry) (seen bool, err error) {
	if !l.sides[side].layer {
		return false, nil
	}
	if err := lookAt(d.trees[side].fd(), name, e); err != nil || !e.exists {
		return false, err
	}
	e.inLayer = true
	e.exists = !isWhiteout(&e.stat)
	return true, nil
}

func lookAt(dir int, name string, e *entry) error {
	err := unix.Fstatat(dir, name, &e.stat, unix.AT_SYMLINK_NOFOLLOW)
	e.exists = err == nil
	return ignore(err, unix.ENOENT)
}

// judge lists what became of one name.
func (d *differ) judge(name string, l *level, sides *[2]entry) error {
	from, to := &sides[0], &sides[1]
	action := Modified
	switch {
	case !from.exists && !to.exists:
		return nil
	case !from.exists:
		action = Created
	case !to.exists:
		action = Deleted
	default:
		same, err := d.same(name, l, from, to)
		if same || err != nil {
			return err
		}
	}
	var size int64
	if to.is(unix.S_IFREG) {
		size = to.stat.Size
	}
	top := len(d.path)
	d.path = append(append(d.path, '/'), name...)
	d.list.add(d.path, action, size)
	d.path = d.path[:top]
	return nil
}

// dirOf returns the directory that a side's entry is in.
func (d *differ) dirOf(side int, e *entry) int {
	if e.inLayer {
		return d.trees[side].fd()
	}
	return d.trees[imageTree].fd()
}
