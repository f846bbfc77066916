// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Action is what happened to a path from one point to another.
type Action string

const (
	Created  Action = "created"
	Modified Action = "modified"
	Deleted  Action = "deleted"
)

// Change is one path that differs between two points.
type Change struct {
	// Path is absolute, as it is inside, and always valid UTF-8, see Escaped.
	Path string
	// Escaped: the path on disk is not valid UTF-8. Each byte that is not part of a
	// valid character is written \xNN (two lower-case hex digits) in Path, and each
	// backslash as two. Otherwise Path is the path as it is.
	Escaped bool
	Action  Action
	Size    int64 // in bytes of a regular file at the second point, else 0
}

// Changes is the difference between two points.
type Changes struct {
	Files []Change // sorted by the bytes of the path
	Total int      // how many there are; Files may hold fewer, the first
	// Complete is false where a part of a tree was moved about while it was read.
	// Total is then a lower bound.
	Complete bool
}

// maxChangeBytes bounds the paths of one answer: a path can be as long as the tree is
// deep.
const maxChangeBytes = 64 << 20

// changeList keeps the first of many changes, in the order of their paths. It is a
// heap with the last on top.
type changeList struct {
	limit int
	total int
	bytes int
	kept  []change
}

// change is a Change with the path as it is on the disk.
type change struct {
	path   string
	action Action
	size   int64
}

func (l *changeList) add(path []byte, action Action, size int64) {
	l.total++
	if l.limit <= 0 || len(path) > maxChangeBytes {
		return
	}
	if (len(l.kept) == l.limit || l.bytes+len(path) > maxChangeBytes) && string(path) > l.kept[0].path {
		// What would come after the last is not kept, nor then what comes after it.
		l.limit = len(l.kept)
		return
	}
	heap.Push(l, change{path: string(path), action: action, size: size})
	for len(l.kept) > l.limit || l.bytes > maxChangeBytes {
		heap.Pop(l)
	}
}

func (l *changeList) changes() Changes {
	slices.SortFunc(l.kept, func(a, b change) int { return cmp.Compare(a.path, b.path) })
	c := Changes{Files: make([]Change, len(l.kept)), Total: l.total, Complete: true}
	for i, k := range l.kept {
		c.Files[i] = Change{Path: k.path, Action: k.action, Size: k.size}
		if !utf8.ValidString(k.path) {
			c.Files[i].Path, c.Files[i].Escaped = escape(k.path), true
		}
	}
	return c
}

// escape writes a path as Change.Escaped says.
func escape(path string) string {
	var b strings.Builder
	for len(path) > 0 {
		r, n := utf8.DecodeRuneInString(path)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, path[0])
		case r == '\\':
			b.WriteString(`\\`)
		default:
			b.WriteString(path[:n])
		}
		path = path[n:]
	}
	return b.String()
}

// Len implements heap.Interface, as do the following.
func (l *changeList) Len() int           { return len(l.kept) }
func (l *changeList) Less(i, j int) bool { return l.kept[i].path > l.kept[j].path }
func (l *changeList) Swap(i, j int)      { l.kept[i], l.kept[j] = l.kept[j], l.kept[i] }

func (l *changeList) Push(x any) {
	c := x.(change)
	l.kept = append(l.kept, c)
	l.bytes += len(c.path)
}

func (l *changeList) Pop() any {
	last := len(l.kept) - 1
	c := l.kept[last]
	l.kept[last] = change{}
	l.kept = l.kept[:last]
	l.bytes -= len(c.path)
	return c
}
