// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Bounds of watches.
const (
	// maxWatches bounds the watches of one sandbox: each event costs each of them.
	maxWatches = 32
	// maxQueue bounds the events that wait for one watch's Next, some 300 bytes
	// each; those that do not fit are counted and dropped.
	maxQueue = 8192
	// maxMoves bounds the moves of directories that one Next undoes, since each
	// costs every directory of the batch.
	maxMoves = 512
	// maxPlaces bounds the directories whose paths a watch remembers.
	maxPlaces = 8192
	// maxNext bounds the events of one Next, whose caller works on all at once.
	maxNext = 512
)

// Kind is what an [Event] of a watch is about.
type Kind string

const (
	KindCreated    Kind = "created"
	KindModified   Kind = "modified"
	KindDeleted    Kind = "deleted"
	KindRenamed    Kind = "renamed"
	KindAttributes Kind = "attributes"
	// KindDropped: events are missing here. Who keeps a picture of the tree has
	// to look at it anew.
	KindDropped Kind = "dropped"
)

// Event is one change as a watch tells it.
type Event struct {
	Kind Kind
	// Path is absolute inside the sandbox; From, of a rename, is where it was.
	// Escaped is about both, see [Change.Escaped].
	Path, From string
	Escaped    bool
	Exchange   bool // of a rename: what was at Path is at From now
	IsDir      bool
	At         time.Time // when the event was read, some milliseconds after the change
	Dropped    int       // of KindDropped: how many events are missing, at least
}

// recordCopy is a record that outlives the read buffer; all watches of a source share it.
type recordCopy struct {
	mask            uint64
	dir, name       string
	newDir, newName string
	target          string
	at              time.Time
}

// clone returns a copy of the record.
func (r *record) clone(at time.Time) *recordCopy {
	var b strings.Builder // one piece of memory for all
	b.Grow(len(r.dir) + len(r.name) + len(r.newDir) + len(r.newName) + len(r.target))
	for _, part := range [][]byte{r.dir, r.name, r.newDir, r.newName, r.target} {
		b.Write(part)
	}
	rest := b.String()
	cut := func(part []byte) (one string) {
		one, rest = rest[:len(part)], rest[len(part):]
		return one
	}
	return &recordCopy{
		mask: r.mask & (told | unix.FAN_ONDIR), dir: cut(r.dir), name: cut(r.name),
		newDir: cut(r.newDir), newName: cut(r.newName), target: cut(r.target), at: at,
	}
}

func (h *recordCopy) has(mask uint64) bool { return h.mask&mask != 0 }
func (h *recordCopy) isDir() bool          { return h.has(unix.FAN_ONDIR) }

// told are the records that watches report.
const told = unix.FAN_CREATE | unix.FAN_DELETE | unix.FAN_RENAME | unix.FAN_MODIFY | unix.FAN_ATTRIB | unix.FAN_CLOSE_WRITE

// Watch reports changes in a directory as they happen, from [Source.Watch] to
// its end. Its methods may be called concurrently; Next by one at a time.
//
// It has no goroutine: the source's events are booked for all its watches, and who calls
// Next pays for finding the paths.
type Watch struct {
	s         *Source
	dir, key  string // the directory: relative to the root, and its handle
	recursive bool
	begin     unix.Timespec
	wake      chan struct{} // one word: look at the queue

	next   sync.Mutex
	places map[string]string // of directories: their path at the end of the last batch
	made   []Event           // for the following calls

	// guarded by s.mu
	queue   []*recordCopy
	dropped int
	ended   error
}

// Watch begins a watch on the directory dir, an absolute path inside the
// sandbox, with all that is below it if recursive. No component of dir may be a
// symbolic link, and it has to lie on the overlay itself; else it fails with
// [fault.Invalid], and with [fault.NotFound] where there is nothing. What was
// finished before the call is not told. It needs [Group.Run].
//
// A path in an event is the one that the change was made under; only where a
// directory above it is moved within the few milliseconds until the event is
// read may it be the one after the move. A file that was moved in is created,
// one that was moved out is deleted. Where a directory is moved in, what is in
// it is not told. A write through a mapping shows when the mapping's file is
// closed; closing a file that was written to may tell of it once more.
func (s *Source) Watch(dir string, recursive bool) (*Watch, error) {
	if !strings.HasPrefix(dir, "/") || strings.ContainsRune(dir, 0) || len(dir) >= unix.PathMax {
		return nil, fault.InvalidField("path", "%.200q is not an absolute path below %d bytes", dir, unix.PathMax)
	}
	w := &Watch{
		s: s, dir: strings.TrimPrefix(path.Clean(dir), "/"), recursive: recursive,
		wake: make(chan struct{}, 1), places: make(map[string]string),
	}
	if err := w.find(); err != nil {
		return nil, err
	}
	read := s.g.catchUp() // what was before is not for this one
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errDown()
	}
	if len(s.watches) >= maxWatches {
		return nil, fault.New(fault.Exhausted, "%d watches are open on this sandbox, which is the bound", maxWatches).
			WithRemedy("close one, or watch a directory above, recursively")
	}
	begin, err := s.beginLocked()
	if err != nil && !errors.Is(err, errPaused) {
		s.restLocked()
		return nil, err
	}
	if w.begin = begin; err != nil || !read {
		w.dropped = 1
		w.poke()
	}
	s.watches = append(s.watches, w)
	s.g.addWatches(1)
	return w, nil
}

// addWatches counts watches, for whose events somebody waits.
func (g *Group) addWatches(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watches += n
}

func errDown() error { return fault.New(fault.State, "the sandbox is no longer watched") }

// find learns the directory's handle.
func (w *Watch) find() error {
	conn, err := w.s.root.SyscallConn()
	if err != nil {
		return errDown()
	}
	if cerr := conn.Control(func(root uintptr) { err = w.findFrom(int(root)) }); cerr != nil {
		return errDown()
	}
	return err
}

func (w *Watch) findFrom(root int) error {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	}
	at := w.dir
	if at == "" {
		at = "."
	}
	fd, err := unix.Openat2(root, at, &how)
	switch err {
	case nil:
	case unix.ENOENT:
		return fault.Wrap(fault.NotFound, err, "there is no directory %.200q", "/"+w.dir)
	case unix.ENOTDIR:
		return fault.InvalidField("path", "%.200q is not a directory", "/"+w.dir)
	case unix.ELOOP:
		return fault.InvalidField("path", "%.200q has a symbolic link in it, which a watch does not follow", "/"+w.dir).
			WithRemedy("name the directory that the link leads to")
	case unix.EXDEV:
		return fault.InvalidField("path", "%.200q lies on another file system than the sandbox's files, where changes are not told", "/"+w.dir)
	default:
		return fault.Wrap(fault.Internal, err, "the directory %.200q cannot be opened", "/"+w.dir)
	}
	defer unix.Close(fd)
	var h handle
	if err := h.read(fd, ""); err != nil {
		return fault.Wrap(fault.Internal, err, "the directory %.200q cannot be watched", "/"+w.dir)
	}
	w.key = string(h.bytes())
	return nil
}

// Close ends the watch; a Next that waits returns [fault.State]. Twice is fine.
func (w *Watch) Close() error {
	w.end(errDown())
	return nil
}

// end takes the watch out of its source; the first reason holds.
func (w *Watch) end(why error) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.ended == nil {
		w.endLocked(why)
	}
	if s.closed || !slices.Contains(s.watches, w) {
		return
	}
	s.watches = slices.DeleteFunc(s.watches, func(o *Watch) bool { return o == w })
	s.g.addWatches(-1)
	s.restLocked()
}

func (w *Watch) endLocked(why error) {
	w.ended = why
	w.poke()
}

func (w *Watch) poke() {
	select {
	case w.wake <- struct{}{}:
	default: // it is told already
	}
}

// queueLocked hands a record to the watches of its source.
func (s *Source) queueLocked(r *record, at time.Time) {
	if !r.has(told) || r.dir == nil {
		return
	}
	room := false
	for _, w := range s.watches {
		if len(w.queue) < maxQueue && w.dropped == 0 {
			room = true
		} else {
			// Once one is missing, what follows would be misread without it.
			w.dropped++
		}
	}
	if !room {
		return
	}
	h := r.clone(at)
	for _, w := range s.watches {
		if n := len(w.queue); w.dropped == 0 && (n == 0 || !w.queue[n-1].repeats(h)) {
			w.queue = append(w.queue, h)
		}
	}
}

// repeats reports whether o says again what h said just before.
func (h *recordCopy) repeats(o *recordCopy) bool {
	const state = unix.FAN_MODIFY | unix.FAN_ATTRIB | unix.FAN_CLOSE_WRITE | unix.FAN_ONDIR
	return h.mask == o.mask && h.mask&^state == 0 && h.name == o.name && h.dir == o.dir && h.target == o.target
}

// Next waits for events and returns them in order. It fails when ctx is done, with
// [fault.NotFound] when the directory was removed or moved away, and with
// [fault.State] when the watch or the sandbox ended, each after the last event.
func (w *Watch) Next(ctx context.Context) ([]Event, error) {
	w.next.Lock()
	defer w.next.Unlock()
	for len(w.made) == 0 {
		if err := w.s.turn.take(ctx); err != nil {
			return nil, err
		}
		var err error
		w.made, err = w.take()
		w.s.turn.give()
		if len(w.made) > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	n := min(len(w.made), maxNext)
	events := w.made[:n:n]
	if w.made = w.made[n:]; len(w.made) == 0 {
		w.made = nil
	}
	return events, nil
}

// take returns what there is to tell of what was read; the error comes once that is nothing.
// It has nothing read: what was queued since is told by the next.
func (w *Watch) take() ([]Event, error) {
	s := w.s
	s.mu.Lock()
	s.bookLocked() // the later the moves that are known, the truer the paths
	batch, dropped, ended := w.queue, w.dropped, w.ended
	w.queue, w.dropped = nil, 0
	s.mu.Unlock()

	events, missing, gone := w.translate(batch)
	if gone && ended == nil {
		ended = fault.New(fault.NotFound, "the directory %.200q was removed or moved away", "/"+w.dir)
		w.end(ended)
	}
	if dropped += missing; dropped > 0 {
		events = append(events, Event{Kind: KindDropped, At: time.Now(), Dropped: dropped})
	}
	if len(events) > 0 {
		return events, nil
	}
	return nil, ended
}

// translate makes events of a batch. Missing is how many it could not make out, gone
// whether the directory is not where it was.
func (w *Watch) translate(batch []*recordCopy) (events []Event, missing int, gone bool) {
	if len(batch) == 0 {
		return nil, 0, false
	}
	conn, err := w.s.root.SyscallConn()
	if err != nil {
		return nil, len(batch), false // the source was closed, and with it the watch
	}
	if cerr := conn.Control(func(root uintptr) {
		t := translator{w: w, diff: diff{root: int(root), w: &window{}, lower: w.s.lower}}
		events, missing, gone = t.translate(batch)
	}); cerr != nil {
		return nil, len(batch), false
	}
	return events, missing, gone
}
