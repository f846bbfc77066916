// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/printable"
)

// translator makes events of one batch of a watch.
//
// The kernel names the directory of an event by a handle, and the file system
// tells where that directory is now, not where it was. So the batch is gone
// through from its end: the moves that came after an event are undone.
type translator struct {
	diff // for finding directories by their handles
	w    *Watch

	moves  []move            // of directories, later than where we are; the latest first
	at     map[string]placed // directories that were found in this batch
	born   map[string]*recordCopy
	blind  bool                   // a directory was removed and the kernel did not say which, see doc.go
	went   map[string]*recordCopy // where directories were renamed to last, if blind
	fresh  bool                   // no directory moved: what the watch remembers holds
	events []Event
	last   map[string]Kind // of each path in events
	been   map[visit]bool
	missed int
}

// visit of a place by a file that was renamed.
type visit struct{ target, dir, name string }

// move of a directory.
type move struct {
	from, to string
	target   string // the one that moved
	exchange bool   // what was at to went to from
}

// undo returns the path that name had before the move.
func (m *move) undo(name string) string {
	if rest, ok := beneath(name, m.to); ok {
		return m.from + rest
	}
	if rest, ok := beneath(name, m.from); ok && m.exchange {
		return m.to + rest
	}
	return name
}

// beneath returns what of a path follows dir: nothing, or a slash and more.
func beneath(name, dir string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, dir)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// dirsOf are the directories of a record; new is only of a rename.
type dirsOf struct{ old, new string }

// placed is where a directory was before as many of the batch's moves were undone.
type placed struct {
	path   string
	undone int
	known  bool
}

func (t *translator) translate(batch []*recordCopy) (events []Event, missing int, gone bool) {
	if t.start() != nil {
		return nil, len(batch), false
	}
	moves, removed := 0, false
	for _, h := range batch {
		if !h.isDir() {
			continue
		}
		switch {
		case h.has(unix.FAN_RENAME):
			moves++
			if t.went == nil {
				t.went = make(map[string]*recordCopy)
			}
			t.went[h.target] = h
		case h.has(unix.FAN_DELETE):
			removed = true
			t.blind = t.blind || h.target == ""
		}
		if h.has(unix.FAN_CREATE) && h.target != "" {
			if t.born == nil {
				t.born = make(map[string]*recordCopy)
			}
			t.born[h.target] = h
		}
	}
	if moves > maxMoves {
		clear(t.w.places)
		return nil, len(batch), !t.stays()
	}
	t.at, t.last, t.fresh = make(map[string]placed), make(map[string]Kind), moves == 0

	paths := make([]dirsOf, len(batch))
	known := make([]bool, len(batch))
	for i := len(batch) - 1; i >= 0; i-- {
		t.yield(i)
		paths[i], known[i] = t.placesOf(batch[i])
	}
	for i := 0; i < len(batch); i++ {
		t.yield(i)
		h := batch[i]
		switch {
		case !known[i]:
			t.missed++
			continue
		case t.comesBack(h):
			t.missed++
		}
		if i+1 < len(batch) && h.exchanges(batch[i+1]) && t.holds(paths[i].old) && t.holds(paths[i].new) {
			t.comesBack(batch[i+1])
			t.addExchange(h, paths[i])
			i++
			continue
		}
		t.add(h, paths[i])
	}
	t.remember()
	return t.events, t.missed, (removed || moves > 0) && !t.stays()
}

// yield lets other goroutines run from time to time: those of other sandboxes' commands.
func (t *translator) yield(i int) {
	if i%bookTurn == 0 {
		runtime.Gosched()
	}
}

// comesBack reports whether a file was renamed to a place that it had in this batch
// before. The kernel may have merged further such renames with the first, so that
// where the file is in the end is not told.
func (t *translator) comesBack(h *recordCopy) bool {
	if !h.has(unix.FAN_RENAME) {
		return false
	}
	if t.been == nil {
		t.been = make(map[visit]bool)
	}
	t.been[visit{h.target, h.dir, h.name}] = true
	to := visit{h.target, h.newDir, h.newName}
	was := t.been[to]
	t.been[to] = true
	return was
}

// exchanges reports whether o, the next record, is the other half of an exchange.
func (h *recordCopy) exchanges(o *recordCopy) bool {
	return h.has(unix.FAN_RENAME) && o.has(unix.FAN_RENAME) && h.target != o.target &&
		h.dir == o.newDir && h.name == o.newName && h.newDir == o.dir && h.newName == o.name
}

// placesOf returns the directories that a record is about, as they were named when
// it was made.
func (t *translator) placesOf(h *recordCopy) (dirs dirsOf, ok bool) {
	if dirs.old, ok = t.path(h.dir); !ok {
		return dirs, false
	}
	if h.has(unix.FAN_RENAME) {
		if dirs.new, ok = t.path(h.newDir); !ok {
			return dirs, false
		}
		if h.isDir() {
			t.moved(move{from: join(dirs.old, h.name), to: join(dirs.new, h.newName), target: h.target})
		}
	}
	if h.isDir() && h.has(unix.FAN_DELETE) && h.target != "" {
		// It cannot be found any more; before this it was here.
		if p, had := t.at[h.target]; !had || !p.known {
			t.at[h.target] = placed{join(dirs.old, h.name), len(t.moves), true}
		}
	}
	return dirs, true
}

// moved adds a move. The kernel tells an exchange as two moves, back to back, of
// two directories; undone one after the other they would come out wrong.
func (t *translator) moved(m move) {
	if n := len(t.moves); n > 0 {
		if later := &t.moves[n-1]; later.from == m.to && later.to == m.from && later.target != m.target {
			later.exchange = true
			return
		}
	}
	t.moves = append(t.moves, m)
}

// path returns the path that a directory had where we are in the batch.
func (t *translator) path(key string) (string, bool) {
	p, had := t.at[key]
	if !had {
		p = t.locateKey(key)
	}
	for ; p.known && p.undone < len(t.moves); p.undone++ {
		p.path = t.moves[p.undone].undo(p.path)
	}
	t.at[key] = p
	return p.path, p.known
}

func (t *translator) locateKey(key string) placed {
	remembered, has := t.w.places[key]
	if has && t.fresh {
		return placed{remembered, len(t.moves), true}
	}
	fd, err := t.handle.open(t.root, key, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err == nil {
		now, alive := t.pathNow(fd)
		unix.Close(fd)
		if alive {
			return placed{now, 0, true}
		}
	}
	// It is gone, and the record of its end is still to be read, or was without it.
	if t.blind {
		if p := t.afterMove(key); p.known {
			return p
		}
	}
	if has {
		return placed{remembered, len(t.moves), true}
	}
	if before, ok := t.lowerPath(key); ok {
		return placed{before, len(t.moves), true}
	}
	if h := t.born[key]; h != nil {
		delete(t.born, key) // a cycle is only in records that lie
		if dir, ok := t.path(h.dir); ok {
			return placed{join(dir, h.name), len(t.moves), true}
		}
	}
	return placed{}
}

// afterMove places a directory of whose end the kernel did not tell by its last move in
// the batch, which was made while it was there.
func (t *translator) afterMove(key string) placed {
	for n := range t.moves {
		if t.moves[n].target == key {
			return placed{t.moves[n].to, n, true}
		}
	}
	h := t.went[key]
	if h == nil {
		return placed{}
	}
	delete(t.went, key) // a cycle is only in records that lie
	dir, ok := t.path(h.newDir)
	return placed{join(dir, h.newName), len(t.moves), ok}
}

// remember keeps for the next batch where directories are at the end of this one.
func (t *translator) remember() {
	if !t.fresh || len(t.w.places)+len(t.at) > maxPlaces {
		clear(t.w.places)
	}
	if !t.fresh {
		return // what is in at is from before the moves
	}
	for key, p := range t.at {
		if p.known && len(t.w.places) < maxPlaces {
			t.w.places[key] = p.path
		}
	}
}

// stays reports whether the watched directory is where it was.
func (t *translator) stays() bool {
	fd, err := t.handle.open(t.root, t.w.key, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	now, alive := t.pathNow(fd)
	return alive && now == t.w.dir
}

// holds reports whether names in the directory at path are told of.
func (t *translator) holds(dir string) bool {
	if dir == t.w.dir {
		return true
	}
	return t.w.recursive && (t.w.dir == "" || strings.HasPrefix(dir, t.w.dir) && dir[len(t.w.dir)] == '/')
}

// add makes the events of one record.
func (t *translator) add(h *recordCopy, dirs dirsOf) {
	if h.has(unix.FAN_RENAME) {
		t.addRename(h, join(dirs.old, h.name), join(dirs.new, h.newName), t.holds(dirs.old), t.holds(dirs.new))
		return
	}
	if h.name == "." { // the directory itself, which has a place in the one above
		above, inTree := "", dirs.old != ""
		if i := strings.LastIndexByte(dirs.old, '/'); i >= 0 {
			above = dirs.old[:i]
		}
		if inTree && t.holds(above) && h.has(unix.FAN_ATTRIB) {
			t.emit(h, KindAttributes, dirs.old)
		}
		return
	}
	if !t.holds(dirs.old) {
		return
	}
	name := join(dirs.old, h.name)
	created, deleted := h.has(unix.FAN_CREATE), h.has(unix.FAN_DELETE)
	// The kernel merges records of one file. It was made before it was removed,
	// unless it is there now: then it has another name and was linked anew.
	again := created && deleted && t.isNow(h)
	if again {
		t.emit(h, KindDeleted, name)
	}
	if created {
		t.emit(h, KindCreated, name)
	}
	if h.has(unix.FAN_ATTRIB) {
		t.emit(h, KindAttributes, name)
	}
	if !h.isDir() && (h.has(unix.FAN_MODIFY) || h.has(unix.FAN_CLOSE_WRITE) && t.written(h, name)) {
		t.emit(h, KindModified, name)
	}
	if deleted && !again {
		t.emit(h, KindDeleted, name)
	}
}

func (t *translator) addRename(h *recordCopy, from, to string, wasIn, isIn bool) {
	switch {
	case wasIn && isIn:
		t.last[from] = KindRenamed
		t.emitFrom(h, KindRenamed, to, from)
	case wasIn:
		t.emit(h, KindDeleted, from)
	case isIn:
		t.emit(h, KindCreated, to)
	}
}

func (t *translator) addExchange(h *recordCopy, dirs dirsOf) {
	from, to := join(dirs.old, h.name), join(dirs.new, h.newName)
	t.last[from] = KindRenamed
	t.emitFrom(h, KindRenamed, to, from)
	t.events[len(t.events)-1].Exchange = true
}

// emit adds an event, unless the last one of the path says the same.
func (t *translator) emit(h *recordCopy, kind Kind, name string) {
	if (kind == KindModified || kind == KindAttributes) && t.last[name] == kind {
		return
	}
	t.emitFrom(h, kind, name, "")
}

func (t *translator) emitFrom(h *recordCopy, kind Kind, name, from string) {
	t.last[name] = kind
	e := Event{Kind: kind, IsDir: h.isDir(), At: h.at}
	var escaped bool
	if e.Path, e.Escaped = printable.Name("/" + name); kind == KindRenamed {
		if e.From, escaped = printable.Name("/" + from); escaped != e.Escaped {
			// One flag is about both.
			e.Path, e.From, e.Escaped = printable.Escape("/"+name), printable.Escape("/"+from), true
		}
	}
	t.events = append(t.events, e)
}

// written reports whether a file that was closed after it had been open for
// writing was written to, through a mapping say, since the watch began.
func (t *translator) written(h *recordCopy, name string) bool {
	if t.last[name] == KindModified {
		return false // it was told
	}
	st, ok := t.stat(h)
	return ok && st.Mode&unix.S_IFMT == unix.S_IFREG && since(st.Mtime, t.w.begin) &&
		(st.Size > 0 || t.last[name] != KindCreated)
}

// isNow reports whether the name is there now, and is the same file.
func (t *translator) isNow(h *recordCopy) bool {
	dir, err := t.handle.open(t.root, h.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	return t.handle.read(dir, h.name) == nil && string(t.handle.bytes()) == h.target
}

// stat looks at the record's name as it is now, on this mount and without following it.
func (t *translator) stat(h *recordCopy) (st unix.Statx_t, ok bool) {
	dir, err := t.handle.open(t.root, h.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return st, false
	}
	defer unix.Close(dir)
	const want = unix.STATX_TYPE | unix.STATX_SIZE | unix.STATX_MTIME | unix.STATX_MNT_ID
	err = unix.Statx(dir, h.name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, want, &st)
	return st, err == nil && st.Mnt_id == t.mount
}
