// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/internal/glob"
)

const (
	// sortedNames is how many names of one directory are kept and sorted.
	sortedNames = 10_000
	// searchSniff is how much of a file decides whether it is text.
	searchSniff = 8 << 10
)

// passedOver are directories that hold what other programs made, and of which
// nobody means a file who does not name them.
var passedOver = []string{".git", ".hg", ".svn", "node_modules", "__pycache__"}

// searchDone ends a walk; its text is one of wire's EndedBy, or empty.
type searchDone string

func (e searchDone) Error() string { return "the search has ended: " + string(e) }

// search is one walk over a tree. It holds one descriptor for each level.
type search struct {
	s      *Service
	ctx    context.Context
	c      *call.Conn
	v      view.View
	glob   glob.Glob
	find   *pattern // nil: files are listed
	owners names    // then: of the files
	depth  int
	limit  int
	after  []string // names of the path after which it begins
	until  time.Time
	buf    []byte

	tree *entryWriter // not nil: all files are listed, to who reads entries
	most int          // names that are looked at
	held int          // bytes of the names of all levels

	found   int
	told    int64 // the last line of the file that was given
	entries int
	given   int // bytes of what was found
	sum     wire.Searched
	items   []byte
}

// Search looks for lines or files below a directory. Whatever is there,
// it takes bounded time and memory, and leaves the tree through no link.
func (s *Service) Search(ctx context.Context, c *call.Conn, req *wire.Request) error {
	d, err := s.of(req)
	if err != nil {
		return err
	}
	x, err := newSearch(req.Search)
	if err != nil {
		return err
	}
	leave, err := s.turn(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := d.open(s, "search"); err != nil {
		return err
	}
	buf := s.o.Buffers.Get()
	defer s.o.Buffers.Put(buf)
	x.s, x.ctx, x.c, x.v, x.buf = s, ctx, c, d.v, buf[:]
	x.until = time.Now().Add(wire.MaxSearchSeconds * time.Second)
	if x.find == nil {
		x.owners = s.names(d.v)
	}
	if err := c.Send(wire.Reply, d.info()); err != nil {
		_ = unix.Close(d.fd)
		return err
	}
	err = x.walk(d.fd, nil, d.st.Dev)
	if end, ok := errors.AsType[searchDone](err); ok {
		x.sum.Ended, err = string(end), nil
	}
	if err == nil {
		err = x.flush()
	}
	if err != nil {
		return err
	}
	return c.Send(wire.Done, x.sum)
}

// newSearch checks what is asked for.
func newSearch(r *wire.Search) (*search, error) {
	if r == nil {
		return nil, fault.New(fault.Malformed, "the call does not say what to search for")
	}
	x := &search{depth: r.Depth, limit: r.Limit, most: wire.MaxSearchEntries}
	switch {
	case x.limit == 0:
		x.limit = wire.DefaultSearchSize
	case x.limit < 0 || x.limit > wire.MaxSearchSize:
		return nil, fault.InvalidField("limit", "%d is outside 1 to %d", x.limit, wire.MaxSearchSize)
	}
	switch {
	case x.depth == 0:
		x.depth = wire.MaxSearchDepth
	case x.depth < 0 || x.depth > wire.MaxSearchDepth:
		return nil, fault.InvalidField("depth", "%d is outside 1 to %d", x.depth, wire.MaxSearchDepth)
	}
	g := wire.UnescapeName(r.Glob)
	ok := len(g) <= wire.MaxSearchPattern
	if ok {
		x.glob, ok = glob.New(g)
	}
	if !ok {
		return nil, fault.InvalidField("glob", "%q is not a valid name pattern of at most %d bytes", message.Clip(r.Glob, 80), wire.MaxSearchPattern).
			WithRemedy("like *.py or src/**/*.go; [ and { are taken literally with \\ before them")
	}
	if r.After != "" {
		after := wire.UnescapeName(r.After)
		if len(after) > wire.MaxPath || r.Pattern != "" {
			return nil, fault.InvalidField("after", "is no path of a list before")
		}
		x.after = strings.Split(after, "/")
	}
	if r.Pattern == "" {
		return x, nil
	}
	var err error
	x.find, err = newPattern(r.Pattern, r.Fold)
	return x, err
}

// walk goes through a directory in the order of its names, and closes it. rel are
// the names that lead to it.
func (x *search) walk(fd int, rel []string, dev uint64) error {
	dir := os.NewFile(uintptr(fd), "directory")
	defer dir.Close()
	names, truncated, err := x.namesOf(dir, rel)
	if err != nil {
		x.sum.Closed++
		return nil
	}
	held := sizeOf(names)
	x.held += held
	defer func() { x.held -= held }()
	for batch := range slices.Chunk(names, nameBatch) {
		entries := make([]wire.FileInfo, len(batch))
		x.v.Do(func() {
			for i, name := range batch {
				entries[i], _, _ = x.s.describeAt(fd, name) // what is gone has no type
			}
		})
		for i, name := range batch {
			if err := x.entry(fd, append(rel[:len(rel):len(rel)], name), entries[i], dev); err != nil {
				return err
			}
		}
	}
	if truncated {
		return searchDone(wire.EndedByEntries)
	}
	return nil
}

// entry looks at one name of a directory.
func (x *search) entry(dir int, rel []string, fi wire.FileInfo, dev uint64) error {
	if x.entries++; x.entries > x.most {
		return searchDone(wire.EndedByEntries)
	}
	if err := x.inTime(); err != nil {
		return err
	}
	name := rel[len(rel)-1]
	if fi.Type == "" || IsTemp(name) {
		return nil // gone, or an upload that is not complete
	}
	order := x.order(rel)
	if order < 0 {
		return nil
	}
	if x.tree != nil && order > 0 {
		if err := x.giveEntry(rel, &fi); err != nil {
			return err
		}
	} else if x.find == nil && order > 0 && x.glob.Match(rel) {
		x.sum.Files++
		x.owners.add(&fi)
		if err := x.give(wire.Found{Path: wire.EscapeName(strings.Join(rel, "/")), File: &fi}); err != nil {
			return err
		}
	}
	switch {
	case fi.Type == wire.Dir && len(rel) < x.depth:
		if x.tree != nil && len(strings.Join(rel, "/")) > wire.MaxPath-maxName-1 {
			return searchDone(wire.EndedByEntries) // no path could name what is in it
		}
		if x.tree == nil && slices.Contains(passedOver, name) {
			x.sum.Passed++
			return nil
		}
		sub, err := x.openAt(dir, name, unix.O_DIRECTORY, dev)
		if err != nil {
			x.sum.Closed++
			return nil
		}
		return x.walk(sub, rel, dev)
	case fi.Type == wire.File && x.find != nil && x.glob.Match(rel):
		file, err := x.openAt(dir, name, 0, dev)
		if err != nil {
			x.sum.Closed++
			return nil
		}
		defer unix.Close(file)
		return x.read(file, wire.EscapeName(strings.Join(rel, "/")))
	}
	return nil
}

// order is below zero for what came in the list before, zero for what leads to
// its last path or is it, and above for all that comes after.
func (x *search) order(rel []string) int {
	if x.after == nil {
		return 1
	}
	if len(rel) <= len(x.after) && slices.Equal(rel, x.after[:len(rel)]) {
		return 0
	}
	return slices.Compare(rel, x.after)
}

// openAt opens a name of a directory and follows no link; what came in its place
// meanwhile, and what is the kernel's, is an error.
func (x *search) openAt(dir int, name string, flag int, dev uint64) (fd int, err error) {
	x.v.Do(func() {
		fd, err = dirs.Openat2(dir, name, unix.OpenHow{
			Flags:   uint64(unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC | flag),
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_BENEATH,
		})
	})
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch {
	case err != nil:
	case st.Dev != dev:
		err = dirs.CheckStorage(fd)
	}
	if want := uint32(unix.S_IFREG); err == nil && flag&unix.O_DIRECTORY == 0 && st.Mode&unix.S_IFMT != want {
		err = unix.EINVAL
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// inTime ends the walk when its time is over or nobody waits for it.
func (x *search) inTime() error {
	switch {
	case x.ctx.Err() != nil:
		return x.ctx.Err()
	case time.Now().After(x.until):
		return searchDone(wire.EndedByTime)
	}
	return nil
}

// read holds the lines of a file against the pattern. A line that is longer than
// the buffer is looked at in pieces.
func (x *search) read(fd int, rel string) error {
	var off, line int64 = 0, 1
	x.told = 0
	held := 0 // bytes of a line that is not complete yet, at the buffer's beginning
	for first := true; ; first = false {
		if err := x.inTime(); err != nil {
			return err
		}
		n, err := descriptor.File(fd).ReadAt(x.buf[held:], off)
		off += int64(n)
		if x.sum.Bytes += int64(n); x.sum.Bytes > wire.MaxSearchBytes {
			return searchDone(wire.EndedByBytes)
		}
		data := x.buf[:held+n]
		if first && bytes.IndexByte(data[:min(len(data), searchSniff)], 0) >= 0 {
			x.sum.Binary++
			return nil
		}
		if first {
			x.sum.Files++
		}
		last := err != nil || n == 0
		if off >= wire.MaxSearchFile && !last {
			x.sum.Large++
			last = true
		}
		whole := data
		if !last {
			if i := bytes.LastIndexByte(data, '\n'); i >= 0 {
				whole = data[:i+1]
			}
		}
		line, err = x.lines(whole, rel, line)
		if err != nil || last {
			return err
		}
		held = copy(x.buf, data[len(whole):])
	}
}

// lines looks at a piece of a file, and gives the number of the line after it.
func (x *search) lines(piece []byte, rel string, line int64) (int64, error) {
	if !x.find.maybe(piece) {
		return line + int64(bytes.Count(piece, []byte{'\n'})), nil
	}
	for len(piece) > 0 {
		end := bytes.IndexByte(piece, '\n')
		one, rest := piece, []byte(nil)
		if end >= 0 {
			one, rest = piece[:end], piece[end+1:]
		}
		one = bytes.TrimSuffix(one, []byte{'\r'})
		if from, to, ok := x.find.find(one); ok && line != x.told {
			x.told = line
			text, cut := around(one, from, to)
			if err := x.give(wire.Found{Path: rel, Line: line, Text: text, Cut: cut}); err != nil {
				return line, err
			}
		}
		if end >= 0 {
			line++
		}
		piece = rest
	}
	return line, nil
}

// around returns a line as text; of a long one, what is around the match.
func around(line []byte, from, to int) (string, bool) {
	cut := false
	if len(line) > wire.MaxSearchText {
		cut = true
		// The match's beginning stands in the first third.
		begin := max(0, min(from-wire.MaxSearchText/3, len(line)-wire.MaxSearchText))
		line = line[begin:min(len(line), begin+wire.MaxSearchText)]
		for n := 0; n < utf8.UTFMax-1 && begin > 0 && len(line) > 0 && !utf8.RuneStart(line[0]); n++ {
			line = line[1:]
		}
	}
	s := strings.ToValidUTF8(string(line), "\uFFFD")
	for len(s) > wire.MaxSearchText { // the replacement is longer than what it replaces
		_, size := utf8.DecodeLastRuneInString(s)
		s, cut = s[:len(s)-size], true
	}
	return s, cut
}

// give sends what was found, some of it at a time.
func (x *search) give(f wire.Found) error {
	if x.found == x.limit {
		return searchDone(wire.EndedByLimit)
	}
	x.found++
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if x.given += len(text); x.given > wire.MaxFoundBytes {
		return searchDone(wire.EndedByLimit)
	}
	if len(x.items) == 0 {
		x.items = append(x.items, '[')
	} else {
		x.items = append(x.items, ',')
	}
	if x.items = append(x.items, text...); len(x.items) >= itemEntries {
		return x.flush()
	}
	return nil
}

func (x *search) flush() error {
	if len(x.items) == 0 {
		return nil
	}
	x.items = append(x.items, ']')
	_, err := x.c.Write(wire.Append(nil, wire.Item, x.items))
	x.items = x.items[:0]
	return err
}
