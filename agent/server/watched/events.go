// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package watched

import (
	"bytes"
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
)

// half is the first half of a rename: where something was.
type half struct {
	place
	path   string
	seers  []*Watch
	cookie uint32
	dir    bool
	stale  bool // what is there now came later
}

// whole is a rename.
type whole struct {
	from  half
	to    place
	path  string
	seers []*Watch
	over  *node // a directory that was there before
	back  bool  // it undoes the one before, or was an exchange: nothing says which
}

// halfway reports whether a rename waits for more events.
func (l *live) halfway() bool { return l.from != nil || l.renamed != nil }

// drain handles all that is queued.
func (l *live) drain() {
	for range 1 << 10 { // whoever makes events faster than they are read goes on meanwhile
		if !l.step() {
			return
		}
	}
}

// step handles some of what is queued, and reports whether there was anything.
func (l *live) step() bool {
	if l.closed {
		return false
	}
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) // there is such a clock
	n, err := unix.Read(l.fd, l.buf)
	if err == unix.EINTR {
		return true
	}
	if err != nil || n <= 0 {
		l.empty, l.left = now.Nano(), false
		l.caughtUp()
		return false
	}
	b := l.buf[:n]
	for len(b) >= unix.SizeofInotifyEvent {
		wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
		cookie, size := binary.NativeEndian.Uint32(b[8:]), int(binary.NativeEndian.Uint32(b[12:]))
		size = min(size, len(b)-unix.SizeofInotifyEvent)
		name := b[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		b = b[unix.SizeofInotifyEvent+size:]
		l.ahead = int64(len(b))
		if l.pos += int64(unix.SizeofInotifyEvent + size); !l.resting {
			l.handle(wd, mask, cookie, string(name))
		}
	}
	l.ahead = 0
	l.forgetSeen()
	return true
}

// caughtUp is called when nothing is queued: the tree is as the disk, unless that changes just now. Who could not
// be opened since something above it was renamed meanwhile is tried again when that was read. The kernel queues an
// event when what it is of can be seen already: only what is missing twice is gone.
func (l *live) caughtUp() {
	if l.halfway() {
		return // a rename is told before what is in it by its new name
	}
	todo := l.todo
	l.todo = nil
	for _, m := range todo {
		if !l.attached(m.dir) || !l.covered(m.dir) || m.dir.kids[m.name] != nil {
			continue
		}
		more := len(l.todo)
		l.arrive(m.place, everything)
		for i := range l.todo[more:] {
			if l.todo[more+i].place == m.place {
				l.todo[more+i].tries = m.tries + 1
			}
		}
	}
	if l.tail() == l.pos {
		l.todo = slices.DeleteFunc(l.todo, func(m missed) bool { return m.tries > 1 })
	}
}

// settle ends the waiting of a rename for more events.
func (l *live) settle() {
	l.flushRenamed()
	l.flushFrom()
}

// handle handles one event.
func (l *live) handle(wd int32, mask, cookie uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		l.settle()
		l.confused()
		return
	}
	n := l.nodes[wd]
	if n == nil {
		return // it was forgotten
	}
	if mask&(unix.IN_IGNORED|unix.IN_UNMOUNT|unix.IN_DELETE_SELF) != 0 {
		l.settle()
		l.endBelow(n)
		l.forget(n)
		return
	}
	if mask&unix.IN_MOVE_SELF != 0 {
		return // the directory above tells
	}
	if name == "" {
		return // the directory itself: the one above tells
	}
	p, dir := place{n, name}, mask&unix.IN_ISDIR != 0
	if mask&(unix.IN_MOVED_FROM|unix.IN_MOVED_TO) == 0 {
		l.settle() // a first half whose second follows only now is told as two events
	}
	switch {
	case mask&unix.IN_MOVED_FROM != 0:
		l.movedFrom(p, cookie, dir)
	case mask&unix.IN_MOVED_TO != 0:
		l.movedTo(p, cookie, dir)
	case mask&unix.IN_CREATE != 0:
		l.created(p, dir, everything)
	case mask&unix.IN_DELETE != 0:
		delete(n.seen, name)
		if kid := l.was(p); kid != nil {
			l.endBelow(kid)
			l.forget(kid)
		}
		l.tell(l.seers(n), &event{kind: wire.Deleted, path: p.path(), dir: dir})
	case mask&unix.IN_MODIFY != 0:
		l.tell(l.seers(n), &event{kind: wire.Modified, path: p.path(), dir: dir})
	case mask&unix.IN_ATTRIB != 0:
		l.tell(l.seers(n), &event{kind: wire.Attributes, path: p.path(), dir: dir})
	}
}

// place returns the directory at a place; nil: there is none.
func (l *live) place(p place) *node { return p.dir.kids[p.name] }

// was returns the directory at a place if the event that is handled can be about it: not one that was
// opened there after the event.
func (l *live) was(p place) *node {
	if kid := p.dir.kids[p.name]; kid != nil && l.pos > kid.at {
		return kid
	}
	return nil
}

// created handles a name that is new; what is in it is told where that was not before.
func (l *live) created(p place, dir bool, tell since) {
	n := p.dir
	if n.seen != nil {
		_, told := n.seen[p.name]
		delete(n.seen, p.name)
		if told && l.pos <= n.until {
			if dir && l.covered(n) && l.place(p) == nil {
				l.arrive(p, everything) // it was there, and could not be opened
			}
			return
		}
	}
	if ws := l.seers(n); len(ws) > 0 {
		l.tell(ws, &event{kind: wire.Created, path: p.path(), dir: dir})
	}
	if dir && l.covered(n) {
		l.arrive(p, tell)
	}
}

func (l *live) movedFrom(p place, cookie uint32, dir bool) {
	if l.from != nil {
		l.settle()
	}
	delete(p.dir.seen, p.name)
	if l.renamed != nil && l.renamed.to != p {
		l.flushRenamed()
	}
	l.from = &half{place: p, path: p.path(), seers: l.seers(p.dir), cookie: cookie, dir: dir, stale: p.dir.kids[p.name] != nil && l.was(p) == nil}
}

func (l *live) movedTo(p place, cookie uint32, dir bool) {
	h := l.from
	if h == nil || h.cookie != cookie {
		l.settle()
		from := since(max(1, l.empty)) // what was in it before is not told
		if l.left {
			from = everything // but it may be what was told as moved out
		}
		l.created(p, dir, from)
		return
	}
	l.from = nil
	back := false
	if r := l.renamed; r != nil {
		if r.from.place == p && (r.over != nil || r.from.dir != h.dir) {
			l.exchanged(r, h.dir)
			return
		}
		if back = r.from.place == p; back && dir && l.covered(p.dir) {
			if back = false; l.exists(r.to) { // it may have been an exchange with one that is not known
				l.flushRenamed()
				l.confused()
				return
			}
		}
		l.flushRenamed()
	}
	r := &whole{from: *h, to: p, path: p.path(), seers: l.seers(p.dir), back: back}
	moved, over := l.place(h.place), l.place(p)
	if h.stale || over != nil && l.was(p) == nil {
		l.flushRenamed()
		l.confused() // what is at one of the places came there later
		return
	}
	if moved != nil {
		l.endBelow(moved)
	}
	if over != nil && over != moved {
		r.over = over
		l.detach(over)
	}
	switch {
	case moved != nil && !l.covered(p.dir):
		l.forget(moved)
	case moved != nil && isAbove(moved, p.dir):
		l.confused()
	case moved != nil:
		l.attach(p, moved)
	}
	switch known := moved != nil || !dir; {
	case !known && l.covered(h.place.dir) && l.covered(p.dir):
		l.movedUnknown(r)
	case !known && l.covered(p.dir):
		l.renamed = r
		l.arrive(p, nothing)
	default:
		l.renamed = r
	}
}

// movedUnknown tells the rename of a directory that could not be opened where it was: it is told as
// removed there, and as made here with all that is in it.
func (l *live) movedUnknown(r *whole) {
	if r.over != nil {
		l.endBelow(r.over)
		l.drop(r.over)
	}
	l.tell(r.from.seers, &event{kind: wire.Deleted, path: r.from.path, dir: true})
	l.tell(r.seers, &event{kind: wire.Deleted, path: r.path, dir: true})
	l.tell(r.seers, &event{kind: wire.Created, path: r.path, dir: true})
	l.arrive(r.to, everything)
}

// exists reports whether there is something at a place.
func (l *live) exists(p place) (is bool) {
	l.root.Do(func() {
		dir, err := l.root.Open("/" + p.dir.path())
		if err != nil {
			return
		}
		defer unix.Close(dir)
		var st unix.Stat_t
		is = unix.Fstatat(dir, p.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
	})
	return is
}

// exchanged tells a rename and the one back as the exchange that they are. dir is of what came back.
func (l *live) exchanged(r *whole, dir bool) {
	l.renamed = nil
	if r.over != nil {
		l.endBelow(r.over)
		if l.place(r.from.place) != nil {
			l.confused()
			return
		}
		l.attach(r.from.place, r.over)
	} else if dir && l.covered(r.from.place.dir) {
		l.arrive(r.from.place, nothing)
	}
	l.tellRenamed(r, true)
}

// flushRenamed tells a rename that is no exchange.
func (l *live) flushRenamed() {
	r := l.renamed
	if r == nil {
		return
	}
	l.renamed = nil
	if r.over != nil {
		l.endBelow(r.over)
		l.drop(r.over)
	}
	l.tellRenamed(r, false)
}

func (l *live) tellRenamed(r *whole, exchange bool) {
	var both, left, came []*Watch
	for _, w := range r.from.seers {
		if slices.Contains(r.seers, w) {
			both = append(both, w)
		} else {
			left = append(left, w)
		}
	}
	for _, w := range r.seers {
		if !slices.Contains(r.from.seers, w) {
			came = append(came, w)
		}
	}
	l.tell(both, &event{kind: wire.Renamed, path: r.path, from: r.from.path, exchange: exchange, dir: r.from.dir})
	if exchange { // something else is where it was
		l.tell(left, &event{kind: wire.Modified, path: r.from.path, dir: r.from.dir})
		l.tell(came, &event{kind: wire.Modified, path: r.path, dir: r.from.dir})
		return
	}
	l.tell(left, &event{kind: wire.Deleted, path: r.from.path, dir: r.from.dir})
	l.tell(came, &event{kind: wire.Created, path: r.path, dir: r.from.dir})
	if r.back {
		l.tell(r.seers, &event{kind: wire.Modified, path: r.path, dir: r.from.dir})
		if l.exists(r.from.place) {
			l.tell(r.from.seers, &event{kind: wire.Created, path: r.from.path, dir: r.from.dir})
		}
	}
}

// flushFrom tells what was moved out.
func (l *live) flushFrom() {
	h := l.from
	if h == nil {
		return
	}
	l.from = nil
	l.left = l.left || h.dir
	if kid := h.place.dir.kids[h.name]; kid != nil && !h.stale {
		l.endBelow(kid)
		l.forget(kid)
	}
	l.tell(h.seers, &event{kind: wire.Deleted, path: h.path, dir: h.dir})
}

// tell queues an event for each of these watches.
func (l *live) tell(ws []*Watch, e *event) {
	for _, w := range ws {
		w.queueEvent(e)
	}
}
