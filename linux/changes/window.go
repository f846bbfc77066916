// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Rough sizes of what a window keeps, with their share of the maps.
const (
	nodeCost  = 256
	entryCost = 192
	// doubtCost is of a rename that only the end of the window tells more about.
	doubtCost = 64
	// maxPending bounds the threads that are between the events of a rename.
	maxPending = 1024
)

// presence of a name when the window began.
type presence uint8

const (
	unsaid  presence = iota // no event has told
	absent                  // the first event about it made it
	present                 // the first event about it took it away or replaced it
	unclear                 // merged events of a hard link: one or the other
)

// node is one file, whatever its names.
type node struct {
	key     string
	content uint64 // FAN_MODIFY, FAN_ATTRIB, FAN_CLOSE_WRITE seen on it
	writes  int    // reads of the queue that had a write to it, since it was last to be ignored
	linked  bool   // its link count changed by an event that has no name
	placed  bool   // a directory: its first move, making or removal was seen
	born    bool   // a directory: made in this window
	moved   bool   // a directory: renamed in this window, and in window.moved
	touched bool   // a directory: in window.touched
	told    bool   // an event told which of its names went
	// from and fromName: where a directory was when the window began, if it is not there now.
	from     *node
	fromName string
	// names are the entries of a directory that an event was about.
	names map[string]*entry

	outside int  // the window's epoch in which it was found outside the tracked directory
	kept    int  // the epoch in which it was found to be needed
	dropped bool // entries of it were thrown away: what its names were before is not known
	place   place
}

// entry is one name in one directory.
type entry struct {
	dir    *node
	name   string
	before presence
	was    *node // the file that had the name, with present
	last   *node // the file that the last event was about
	isDir  bool  // was is a directory
}

// rename is the first rename onto a name, until the same thread's next events
// tell whether it replaced something.
type rename struct {
	old, new *entry
	moved    *node
	victim   *node // perhaps replaced
	isDir    bool
	over     bool // its last event came: only the second half of an exchange can follow
}

// window is what happened since a [Tracker] began, reduced to the first fact
// about each name. It is not safe for concurrent use.
type window struct {
	begin unix.Timespec

	nodes   map[string]*node
	entries []*entry
	moved   []*node // directories
	touched []*node // directories whose own attributes changed
	pending map[int32]rename
	doubts  []rename // that have a victim, or it only seems so
	clear   []rename // of directories, that seem to have none
	unnamed bool     // a directory was removed, and no event says which

	cost, limit int
	epoch       int  // counts the renames of directories, from 1
	full        bool // over the limit: new names are not taken
	lost        loss // something happened that is not in here

	// evict, called when the limit is near, throws away what is not needed; nil
	// where there is nothing of the kind.
	evict func(*window)
}

// node returns the node of a handle, nil where the window is full.
func (w *window) node(key []byte) *node {
	if key == nil {
		return nil
	}
	if n := w.nodes[string(key)]; n != nil {
		return n
	}
	if !w.room(nodeCost + 2*len(key)) {
		return nil
	}
	n := &node{key: string(key)}
	if w.nodes == nil {
		w.nodes = make(map[string]*node)
	}
	w.nodes[n.key] = n
	return n
}

// entry returns the entry of a name, nil where the window is full.
func (w *window) entry(dir *node, name []byte) *entry {
	if dir == nil {
		return nil
	}
	if e := dir.names[string(name)]; e != nil {
		return e
	}
	if !w.room(entryCost + 2*len(name)) {
		return nil
	}
	e := &entry{dir: dir, name: string(name)}
	if dir.names == nil {
		dir.names = make(map[string]*entry)
	}
	dir.names[e.name] = e
	w.entries = append(w.entries, e)
	return e
}

// room takes cost from the budget. What does not fit is lost, and said so.
func (w *window) room(cost int) bool {
	if w.cost+cost > w.limit {
		w.full = true
		w.lost.because(errors.New("the window is full"))
		return false
	}
	w.cost += cost
	return true
}

// apply takes one event into account.
func (w *window) apply(r *record) {
	// Eviction comes between events, so that no half-applied one refers to what goes.
	if w.evict != nil && !w.full && w.cost+4*maxRecord > w.limit {
		w.evict(w)
	}
	if len(w.pending) > 0 {
		w.resolveRename(r)
	}
	switch {
	case r.has(unix.FAN_RENAME):
		w.applyRename(r)
	case r.dir == nil:
		// A file without a name: only its link count changed, or it moved.
		if r.has(unix.FAN_ATTRIB) {
			if n := w.node(r.target); n != nil {
				n.linked = true
			}
		}
	case r.self():
		if r.has(unix.FAN_ATTRIB) && !w.isOutside(r.dir) {
			if n := w.node(r.dir); n != nil && !n.touched {
				n.touched = true
				w.touched = append(w.touched, n)
			}
		}
	default:
		w.applyName(r)
	}
}

// isOutside reports whether the directory was found to be outside the tracked
// one, and no directory moved since.
func (w *window) isOutside(dir []byte) bool {
	if w.epoch == 0 {
		return false // nothing was ever looked up
	}
	n := w.nodes[string(dir)]
	return n != nil && n.outside == w.epoch
}

func (w *window) applyName(r *record) {
	if w.isOutside(r.dir) {
		return
	}
	e, n := w.entry(w.node(r.dir), r.name), w.node(r.target)
	if e == nil {
		return
	}
	if n == nil {
		// The removal of a directory of a lower layer comes without the directory, and before
		// Linux 6.13 each removal without what was removed.
		if r.target == nil && r.has(unix.FAN_DELETE) {
			w.unnamed = w.unnamed || r.has(unix.FAN_ONDIR)
			if e.before == unsaid {
				e.before, e.isDir = present, r.has(unix.FAN_ONDIR)
			}
		}
		return
	}
	e.last = n
	n.content |= r.mask & (unix.FAN_MODIFY | unix.FAN_ATTRIB | unix.FAN_CLOSE_WRITE)
	created, deleted := r.has(unix.FAN_CREATE), r.has(unix.FAN_DELETE)
	if !created && !deleted {
		return
	}
	n.told = n.told || deleted
	isDir := r.has(unix.FAN_ONDIR)
	if e.before == unsaid {
		switch {
		case created && deleted && n.linked:
			e.before, e.was = unclear, n
		case created:
			// With both, the kernel merged them: a file that is not linked
			// elsewhere cannot come back, so making came first.
			e.before = absent
		default:
			e.before, e.was, e.isDir = present, n, isDir
		}
	}
	if isDir && !n.placed {
		n.placed = true
		if created {
			n.born = true
		} else {
			n.from, n.fromName = e.dir, e.name
		}
	}
}

func (w *window) applyRename(r *record) {
	isDir := r.has(unix.FAN_ONDIR)
	if isDir && w.epoch > 0 {
		w.epoch++ // whatever was outside may be inside now
	}
	if !isDir && w.isOutside(r.dir) && w.isOutside(r.newDir) {
		return
	}
	from, to, n := w.entry(w.node(r.dir), r.name), w.entry(w.node(r.newDir), r.newName), w.node(r.target)
	if from == nil || to == nil || n == nil {
		return
	}
	if from.before == unsaid {
		from.before, from.was, from.isDir = present, n, isDir
	}
	if to.before != unsaid {
		if to.last != nil {
			to.last.told = true
		}
	} else {
		to.before = absent
		if len(w.pending) >= maxPending {
			w.lost.because(errors.New("too many threads rename at once"))
		} else {
			if w.pending == nil {
				w.pending = make(map[int32]rename)
			}
			w.pending[r.tid] = rename{old: from, new: to, moved: n, isDir: isDir}
		}
	}
	from.last, to.last = n, n
	if isDir {
		if !n.placed {
			n.placed, n.from, n.fromName = true, from.dir, from.name
		}
		if !n.moved {
			n.moved = true
			w.moved = append(w.moved, n)
		}
	}
}

// resolveRename decides from a thread's next events whether its last rename replaced
// something. The kernel queues, in one rename: RENAME; ATTRIB on the replaced
// file, without a name; MOVE_SELF on the moved file. Linking and unlinking also
// begin with an ATTRIB without a name, and then name the same file. An exchange
// is two renames, back to back, of two files.
//
// The kernel merges an event with one of the same thread that has the same subject and
// was not read yet. So either of the last two may be missing, and what follows in their
// place is about something else: [diff.resolveRenames] then asks the file system.
func (w *window) resolveRename(r *record) {
	p, ok := w.pending[r.tid]
	if !ok {
		return
	}
	subject := r.target
	if r.self() {
		subject = r.dir
	}
	alone := r.dir == nil || r.self()
	switch {
	case p.victim != nil && alone && string(subject) == p.moved.key && r.has(unix.FAN_MOVE_SELF):
		p.replaced(p.victim)
	case p.victim != nil && r.has(unix.FAN_CREATE|unix.FAN_DELETE) && string(r.target) == p.victim.key:
		w.alone(p)
	case p.victim != nil && w.removes(r, p.victim):
		p.victim.told = true
		w.alone(p)
	case p.victim != nil:
		w.doubt(p)
	case alone && string(subject) == p.moved.key && !p.over:
		p.over = r.has(unix.FAN_MOVE_SELF)
		w.pending[r.tid] = p
		return
	case alone && r.has(unix.FAN_ATTRIB) && r.has(unix.FAN_ONDIR) == p.isDir && !p.over:
		p.victim = w.node(subject)
		w.pending[r.tid] = p
		return
	case r.has(unix.FAN_RENAME) && string(r.dir) == p.new.dir.key && string(r.newDir) == p.old.dir.key &&
		string(r.name) == p.new.name && string(r.newName) == p.old.name && string(r.target) != p.moved.key:
		p.isDir = r.has(unix.FAN_ONDIR)
		if n := w.node(r.target); n != nil {
			p.replaced(n)
		}
	default:
		w.alone(p)
	}
	delete(w.pending, r.tid)
}

// removes reports whether the event, which follows an ATTRIB without a name on n, is the removal of
// n. Kernels before 6.13 do not say which file was removed; then it is n's unless the name was
// another file's.
func (w *window) removes(r *record, n *node) bool {
	if r.target != nil || r.dir == nil || !r.has(unix.FAN_DELETE) || r.has(unix.FAN_ONDIR) {
		return false
	}
	dir := w.nodes[string(r.dir)]
	if dir == nil {
		return true
	}
	e := dir.names[string(r.name)]
	return e == nil || e.last == nil || e.last == n
}

// doubt keeps a rename whose victim may be none.
func (w *window) doubt(p rename) {
	if w.room(doubtCost) {
		w.doubts = append(w.doubts, p)
	}
}

// alone keeps a rename that no event says had a victim. A file that was replaced is told by an
// event without a name, which can only have been merged with another such, and only
// directories have those while they keep their names.
func (w *window) alone(p rename) {
	if p.isDir && w.room(doubtCost) {
		w.clear = append(w.clear, p)
	}
}

// replaced books that the new name had a file before the rename.
func (p *rename) replaced(n *node) {
	n.told = true
	p.new.before, p.new.was, p.new.isDir = present, n, p.isDir
	if p.isDir && !n.placed {
		n.placed, n.from, n.fromName = true, p.new.dir, p.new.name
	}
}

// finish ends what waits for a further event.
func (w *window) finish() {
	for _, p := range w.pending {
		if p.victim != nil {
			w.doubt(p)
		} else {
			w.alone(p)
		}
	}
	w.pending = nil
}
