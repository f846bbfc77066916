// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package changed

import (
	"bytes"
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
)

// Changes is what is different between two looks.
type Changes struct {
	Files []wire.ChangedFile // sorted by the bytes of the path; the first, where there are many. Paths are not escaped
	Total int
	Why   string // something may be missing; empty: nothing is
}

// merge compares what was kept of a tree with what is there.
type merge struct {
	*look
	path  []byte // of the directory, below the first one, with a "/" behind it
	files []wire.ChangedFile
	bytes int // of their paths
	total int
}

// inside is a directory of which the name was told, and not yet what is in it.
type inside struct {
	name    string
	was     *dir
	is      bool // it is there
	touched bool // its own state changed, or only what is in it
}

// compare compares a directory with what it was.
func (m *merge) compare(path string, was *dir) error {
	fd, err := m.open(-1, path)
	if err != nil {
		return err
	}
	if fd >= 0 {
		defer unix.Close(fd)
	}
	return m.dir(fd, was)
}

// dir compares what is in a directory, which is open or gone, in the order of the paths: what is in
// a directory comes behind the names that stand between its own and its own with a "/".
func (m *merge) dir(fd int, was *dir) error {
	var states []state
	name := func(int) []byte { return nil }
	if fd >= 0 {
		names, s, err := m.read(fd)
		if err != nil {
			return err
		}
		states, name = s, names.Name
	}
	var open []inside // the last comes first
	b := was.before()
	for i := 0; ; {
		for i < len(states) && states[i].gone {
			i++
		}
		order := 0
		switch {
		case b.name == nil && i >= len(states):
			return m.enterAll(fd, open, nil)
		case b.name == nil:
			order = 1
		case i >= len(states):
			order = -1
		default:
			order = bytes.Compare(b.name, name(i))
		}
		next := b.name
		if order > 0 {
			next = name(i)
		}
		for len(open) > 0 && isBehind(next, open[len(open)-1].name) {
			if err := m.enterAll(fd, open[len(open)-1:], nil); err != nil {
				return err
			}
			open = open[:len(open)-1]
		}
		in := inside{name: string(next)}
		enter := false
		if order <= 0 {
			in.was, enter = b.sub, b.state.dir
		}
		if order >= 0 {
			in.is = states[i].dir
			enter = enter || in.is
		}
		switch {
		case order < 0:
			m.tell(in.name, wire.Deleted, 0)
		case order > 0:
			m.tell(in.name, wire.Created, states[i].size)
		case b.state.is != states[i].is:
			m.tell(in.name, wire.Modified, states[i].size)
		default:
			in.touched = b.state.dir && b.state.own != states[i].own && states[i].set
		}
		if enter {
			open = append(open, in)
		}
		if order <= 0 {
			b.next()
		}
		if order >= 0 {
			i++
		}
	}
}

// isBehind reports whether a name comes after all that is in a directory of the same one.
func isBehind(name []byte, dir string) bool {
	n := len(dir)
	return len(name) < n || string(name[:n]) != dir || len(name) > n && name[n] > '/'
}

// enterAll compares what is in directories, the last first.
func (m *merge) enterAll(fd int, open []inside, err error) error {
	for ; len(open) > 0 && err == nil; open = open[:len(open)-1] {
		err = m.enter(fd, open[len(open)-1])
	}
	return err
}

func (m *merge) enter(fd int, in inside) error {
	if in.was == nil && !in.is {
		return nil
	}
	if m.level++; m.level >= MaxDepth {
		m.level--
		m.missed("directories lie too deep")
		return nil
	}
	told, at := m.total, len(m.path)
	defer func() { m.level, m.path = m.level-1, m.path[:at] }()
	sub := -1
	if in.is {
		var err error
		missed := m.why
		if sub, err = m.open(fd, in.name); err != nil {
			return err
		}
		if sub >= 0 {
			defer unix.Close(sub)
		} else if m.why != missed {
			return nil // what is in it is not known
		}
	}
	m.path = append(append(m.path, in.name...), '/')
	if err := m.dir(sub, in.was); err != nil {
		return err
	}
	if in.touched && m.total == told {
		m.path = m.path[:at]
		m.tell(in.name, wire.Modified, 0)
	}
	return nil
}

// tell appends a change to the answer.
func (m *merge) tell(name, action string, size int64) {
	m.total++
	if n := len(m.path) + len(name); len(m.files) < wire.MaxChanged && m.bytes+n <= wire.MaxChangedBytes {
		m.bytes += n
		m.files = append(m.files, wire.ChangedFile{Path: string(m.path) + name, Action: action, Size: size})
	}
}

func (m *merge) answer(why string) Changes {
	slices.SortFunc(m.files, func(a, b wire.ChangedFile) int { return cmp.Compare(a.Path, b.Path) })
	return Changes{Files: m.files, Total: m.total, Why: why}
}
