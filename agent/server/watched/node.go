// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package watched

import (
	"slices"

	"golang.org/x/sys/unix"
)

// none is no watch of the kernel's.
const none = -1

// What is asked of a watched directory, and of those above one, which tell when it is gone.
const (
	all   = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_ATTRIB | above
	above = unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF |
		unix.IN_EXCL_UNLINK | unix.IN_ONLYDIR | unix.IN_MASK_ADD
)

// node is a watched directory.
type node struct {
	wd     int32
	parent *node // nil: "/", or it is not in the tree any more
	name   string
	kids   map[string]*node

	watches []*Watch // that are on it
	at      int64    // what was queued before this position was before it was opened

	seen  map[string]struct{} // names that were told before their event was read
	until int64               // position behind those events
}

// place is a name in a directory.
type place struct {
	dir  *node
	name string
}

// missed is a directory that was not where it was told of.
type missed struct {
	place
	tries int // while nothing was queued
}

func (p place) path() string { return p.dir.path() + "/" + p.name }

// path is that of a directory, "" for "/".
func (n *node) path() string {
	size := 0
	for m := n; m.parent != nil; m = m.parent {
		size += 1 + len(m.name)
	}
	b := make([]byte, size)
	for m := n; m.parent != nil; m = m.parent {
		size -= len(m.name)
		copy(b[size:], m.name)
		size--
		b[size] = '/'
	}
	return string(b)
}

// attached reports whether the directory is in the tree.
func (l *live) attached(n *node) bool {
	return isAbove(l.top, n)
}

// seers are the watches that tell of what is in a directory.
func (l *live) seers(n *node) (ws []*Watch) {
	for m := n; m != nil; m = m.parent {
		for _, w := range m.watches {
			if m == n || w.recursive {
				ws = append(ws, w)
			}
		}
	}
	return ws
}

// covered reports whether the directories in a directory are watched, too.
func (l *live) covered(n *node) bool {
	for m := n; m != nil; m = m.parent {
		if slices.ContainsFunc(m.watches, func(w *Watch) bool { return w.recursive && w.ended == nil }) {
			return true
		}
	}
	return false
}

// put puts a directory that the kernel watches into its place. What was there is another one, and
// gone. It fails where the directory is one of those above the place: the tree is not as the disk.
func (l *live) put(p place, wd int32, at int64) (*node, error) {
	n := l.nodes[wd]
	if n != nil && isAbove(n, p.dir) {
		return nil, unix.ELOOP
	}
	if n == nil {
		n = &node{wd: wd}
		l.nodes[wd] = n
	}
	n.at = at
	old := p.dir.kids[p.name]
	if old == n {
		return n, nil
	}
	if n.parent != nil {
		l.confused() // it was moved here, which is still to be read
	}
	if old != nil {
		l.confused() // it went, as is still to be read
		l.endBelow(old)
		l.forget(old)
	}
	l.attach(p, n)
	return n, nil
}

// isAbove reports whether n is m or a directory above it.
func isAbove(n, m *node) bool {
	for ; m != nil; m = m.parent {
		if m == n {
			return true
		}
	}
	return false
}

// attach moves a directory into a place that is free.
func (l *live) attach(p place, n *node) {
	l.detach(n)
	if p.dir.kids == nil {
		p.dir.kids = make(map[string]*node)
	}
	p.dir.kids[p.name] = n
	n.parent, n.name = p.dir, p.name
}

func (l *live) detach(n *node) {
	if n.parent != nil && n.parent.kids[n.name] == n {
		delete(n.parent.kids, n.name)
	}
	n.parent = nil
}

// forget takes a directory and all below it out of the tree, and has the kernel watch it no more.
func (l *live) forget(n *node) {
	l.detach(n)
	l.drop(n)
}

func (l *live) drop(n *node) {
	if n.wd != none && l.nodes[n.wd] == n {
		delete(l.nodes, n.wd)
		_, _ = unix.InotifyRmWatch(l.fd, uint32(n.wd)) // it may be gone with its directory
	}
	n.wd = none
	for _, kid := range n.kids {
		kid.parent = nil
		l.drop(kid)
	}
	n.kids = nil
}

// prune forgets what no watch needs.
func (l *live) prune() { l.needed(l.top, false) }

// needed reports whether a directory is needed, and forgets what is not below it.
func (l *live) needed(n *node, covered bool) bool {
	covered = covered || slices.ContainsFunc(n.watches, func(w *Watch) bool { return w.recursive })
	needs := covered || len(n.watches) > 0
	for _, kid := range n.kids {
		if l.needed(kid, covered) {
			needs = true
		} else {
			l.forget(kid)
		}
	}
	return needs
}

// leave removes a watch from its directory.
func (l *live) leave(w *Watch) {
	if w.top != nil {
		w.top.watches = slices.DeleteFunc(w.top.watches, func(o *Watch) bool { return o == w })
		w.top = nil
	}
}

// endBelow ends the watches on a directory and below it, which is not where it was.
func (l *live) endBelow(n *node) {
	for _, w := range n.watches {
		if l.pos > w.start {
			w.end(errRemoved(w.dir))
		}
	}
	for _, kid := range n.kids {
		l.endBelow(kid)
	}
}
