// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package changed

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
)

// dir is what a directory held: for each name, in their order, one byte of flags, one for the length
// of the name, the name, and the states.
type dir struct {
	entries []byte
	below   []*dir // of each entry that is a directory, in their order; nil: not looked into
}

// dirCost is what a directory keeps beside its entries.
const dirCost = 64

// state is what a name was: numbers that are equal where nothing changed.
type state struct {
	is   uint64 // all of it; of a directory what its entries have no part in
	own  uint64 // of a directory its time of change
	size int64
	dir  bool
	// set: of a directory, its times are not those that a change of its entries leaves.
	set  bool
	gone bool
}

// look is one walk over a tree.
type look struct {
	t     *Tracker
	ctx   context.Context
	until time.Time

	entries int
	kept    int    // bytes, counted in the tracker, too
	newest  int64  // time of change, in ns, of those that are not still to come
	why     string // a part could not be looked at
	level   int
}

// take looks at a directory and all below it.
func (l *look) take(path string) (*dir, error) {
	fd, err := l.open(-1, path)
	if err != nil || fd < 0 {
		return &dir{}, err
	}
	defer unix.Close(fd)
	return l.dir(fd)
}

// open opens the directory of a path, or with one that of a name in it; -1: there is none, or it is
// not looked into.
func (l *look) open(in int, name string) (fd int, err error) {
	l.t.root.Do(func() {
		if in < 0 {
			fd, err = l.t.root.Open(name)
		} else {
			fd, err = l.t.root.Enter(in, name)
		}
	})
	switch {
	case err == nil:
		return fd, nil
	case err == dirs.ErrHidden, err == unix.ENOENT, in >= 0 && dirs.Gone(err):
	case err == unix.EXDEV:
		l.missed("a part of the directory is mounted from elsewhere")
	case err == unix.EMFILE, err == unix.ENFILE, err == unix.ENOMEM:
		return -1, errUnsure("the agent has no more open files or memory")
	default:
		l.missed("a directory cannot be looked into: " + err.Error())
	}
	return -1, nil
}

func (l *look) missed(why string) {
	if l.why == "" {
		l.why = why
	}
}

// read reads a directory, sorted, and the states of what is in it.
func (l *look) read(fd int) (*dirs.Names, []state, error) {
	names, err := dirs.Read(fd, MaxEntries-l.entries)
	switch {
	case err == dirs.ErrMany:
		return nil, nil, errLarge
	case err == unix.ENOENT: // it was removed
		return new(dirs.Names), nil, nil
	case err != nil:
		l.missed("a directory cannot be read: " + err.Error())
		return new(dirs.Names), nil, nil
	}
	l.entries += names.Len()
	names.Sort()
	states := make([]state, names.Len())
	now := time.Now().UnixNano()
	const batch = 256
	for from := 0; from < len(states); from += batch {
		if err := l.ctx.Err(); err != nil {
			return nil, nil, err
		}
		if time.Now().After(l.until) {
			return nil, nil, errLong
		}
		l.t.root.Do(func() {
			for i := from; i < min(len(states), from+batch); i++ {
				states[i] = l.state(fd, string(names.Name(i)), now)
			}
		})
	}
	return names, states, nil
}

// state asks for the state of a name. It runs within Do.
func (l *look) state(fd int, name string, now int64) (s state) {
	var st unix.Statx_t
	err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &st)
	switch {
	case errors.Is(err, unix.ENOENT):
		s.gone = true
		return s
	case err != nil:
		l.missed("a file cannot be looked at: " + err.Error())
		s.gone = true
		return s
	}
	mtime, ctime := nano(st.Mtime), nano(st.Ctime)
	if ctime <= now {
		l.newest = max(l.newest, ctime)
	}
	var b [56]byte
	e := binary.NativeEndian
	e.PutUint64(b[:], st.Ino)
	e.PutUint64(b[8:], uint64(st.Dev_major)<<32|uint64(st.Dev_minor))
	e.PutUint32(b[16:], uint32(st.Mode))
	e.PutUint32(b[20:], st.Uid)
	e.PutUint32(b[24:], st.Gid)
	if s.dir = st.Mode&unix.S_IFMT == unix.S_IFDIR; s.dir {
		s.own, s.set = uint64(ctime), ctime != mtime
	} else {
		e.PutUint64(b[32:], st.Size)
		e.PutUint64(b[40:], uint64(mtime))
		e.PutUint64(b[48:], uint64(ctime))
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		s.size = int64(st.Size)
	}
	s.is = maphash.Bytes(l.t.seed, b[:])
	return s
}

func nano(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// dir keeps what a directory holds, and all below it.
func (l *look) dir(fd int) (*dir, error) {
	names, states, err := l.read(fd)
	if err != nil {
		return nil, err
	}
	d := new(dir)
	size := 0
	for i, s := range states {
		if !s.gone {
			size += 2 + len(names.Name(i)) + 8
			if s.dir {
				size += 8 + 8 // and of below
			}
		}
	}
	if !l.keep(dirCost + size) {
		return nil, errFull
	}
	d.entries = make([]byte, 0, size)
	subs := 0
	for i, s := range states {
		if s.gone {
			continue
		}
		name := names.Name(i)
		flag := byte(0)
		if s.dir {
			flag = 1
			subs++
		}
		d.entries = append(append(d.entries, flag, byte(len(name))), name...)
		d.entries = binary.NativeEndian.AppendUint64(d.entries, s.is)
		if s.dir {
			d.entries = binary.NativeEndian.AppendUint64(d.entries, s.own)
		}
	}
	if subs == 0 {
		return d, nil
	}
	d.below = make([]*dir, 0, subs)
	for i, s := range states {
		if !s.dir {
			continue
		}
		sub, err := l.enter(fd, string(names.Name(i)))
		if err != nil {
			return nil, err
		}
		d.below = append(d.below, sub)
	}
	return d, nil
}

// enter looks at a directory that lies in another one; nil where that cannot be done.
func (l *look) enter(in int, name string) (*dir, error) {
	if l.level++; l.level >= MaxDepth {
		l.level--
		l.missed("directories lie too deep")
		return nil, nil
	}
	defer func() { l.level-- }()
	fd, err := l.open(in, name)
	if err != nil || fd < 0 {
		return nil, err
	}
	defer unix.Close(fd)
	return l.dir(fd)
}

// keep counts bytes, if there is room.
func (l *look) keep(n int) bool {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if l.t.kept+n > maxKept {
		return false
	}
	l.t.kept += n
	l.kept += n
	return true
}

// before reads the kept entries of a directory one by one.
type before struct {
	rest  []byte
	below []*dir
	name  []byte // nil: there are no more
	state state
	sub   *dir
}

func (d *dir) before() *before {
	b := new(before)
	if d != nil {
		b.rest, b.below = d.entries, d.below
	}
	b.next()
	return b
}

func (b *before) next() {
	if b.name, b.sub = nil, nil; len(b.rest) == 0 {
		return
	}
	n := int(b.rest[1])
	b.state = state{dir: b.rest[0] == 1}
	b.name = b.rest[2 : 2+n]
	b.rest = b.rest[2+n:]
	b.state.is, b.rest = binary.NativeEndian.Uint64(b.rest), b.rest[8:]
	if b.state.dir {
		b.state.own, b.rest = binary.NativeEndian.Uint64(b.rest), b.rest[8:]
		b.sub, b.below = b.below[0], b.below[1:]
	}
}
