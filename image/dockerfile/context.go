// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerfile

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"sandpit.dev/fault"
)

// Limits bound a context. Zero fields take the values named behind them.
type Limits struct {
	Bytes int64 // of its files: 4 GiB
	Files int   // entries, with the directories that no entry is about: 200,000
	Names int64 // bytes of names and of links' targets: 64 MiB
	// Room, if not nil, is asked before the first byte of content and after each 64 MiB: what it returns refuses
	// the context.
	Room func() error
}

func (l Limits) filled() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 4 << 30
	}
	if l.Files <= 0 {
		l.Files = 200_000
	}
	if l.Names <= 0 {
		l.Names = 64 << 20
	}
	if l.Room == nil {
		l.Room = func() error { return nil }
	}
	return l
}

// Bounds of a name and of a link's target, in bytes; and of the links that a path leads through.
const (
	maxName  = 4096
	maxDepth = 200
	maxHops  = 40
)

// Context is the files that COPY and ADD take from. It is safe for concurrent use once it is read.
type Context struct {
	file    *os.File // the content of all files, one behind the other
	entries map[string]*Entry
	names   []string // sorted
}

// Entry is a file, a directory or a symbolic link of a context.
type Entry struct {
	Name string // below the context's top, which is "."
	Mode fs.FileMode
	Time time.Time
	Link string // target of a symbolic link
	Size int64
	Sum  [sha256.Size]byte // of a file's content

	at   int64
	from *os.File
}

// Open returns the content of a file.
func (e *Entry) Open() io.Reader { return io.NewSectionReader(e.from, e.at, e.Size) }

// ReadContext reads an archive, compressed by gzip or not, and keeps its content in file, which it owns from
// then on. The archive is hostile.
func ReadContext(ctx context.Context, r io.Reader, file *os.File, l Limits) (*Context, error) {
	c := &Context{file: file, entries: map[string]*Entry{".": {Name: ".", Mode: fs.ModeDir | 0o755}}}
	if err := c.read(ctx, r, l.filled()); err != nil {
		_ = file.Close()
		return nil, err
	}
	c.names = slices.Sorted(maps.Keys(c.entries))
	return c, nil
}

// Close frees what the content takes.
func (c *Context) Close() error { return c.file.Close() }

func refusal(format string, args ...any) error {
	return fault.New(fault.Invalid, "the build's context is refused: %s", fmt.Sprintf(format, args...))
}

func tooMany(files int) error {
	return fault.New(fault.TooLarge, "the build's context has more than %d files and directories", files).WithRemedy("leave out what the build does not need, by .dockerignore")
}

func (c *Context) read(ctx context.Context, r io.Reader, l Limits) error {
	in := bufio.NewReaderSize(r, 64<<10)
	r = in
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return refusal("it is not whole: %v", err)
		}
		defer z.Close()
		r = z
	}
	out := bufio.NewWriterSize(c.file, 1<<20)
	var at, names int64
	looked := &looking{room: l.Room}
	tr := tar.NewReader(r)
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return archiveError(err, n)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			if n >= l.Files { // each takes its time, though nothing is made of it
				return tooMany(l.Files)
			}
			continue
		}
		if names += int64(len(h.Name) + len(h.Linkname)); names > l.Names {
			return fault.New(fault.TooLarge, "the names in the build's context have more than %d bytes", l.Names).WithRemedy("leave out what the build does not need, by .dockerignore")
		}
		e, err := c.entry(h)
		if n >= l.Files || len(c.entries) > l.Files+1 { // the top is one
			return tooMany(l.Files)
		}
		if err != nil || e == nil {
			if err != nil {
				return err
			}
			continue
		}
		if !e.Mode.IsRegular() || h.Typeflag == tar.TypeLink {
			continue
		}
		if h.Size > l.Bytes-at {
			return fault.New(fault.TooLarge, "the files of the build's context have more than %d bytes", l.Bytes).WithRemedy("leave out what the build does not need, by .dockerignore")
		}
		sum := sha256.New()
		if _, err := io.Copy(io.MultiWriter(looked, out, sum), tr); err != nil {
			return archiveError(err, n)
		}
		e.at, e.Size, e.from = at, h.Size, c.file
		sum.Sum(e.Sum[:0])
		at += h.Size
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20)); err != nil {
		return archiveError(err, len(c.entries))
	}
	return out.Flush()
}

// perLook is how many bytes are written between two looks at the disk.
const perLook = 64 << 20

// looking asks whether there is room while something is written.
type looking struct {
	room func() error
	left int64 // until it asks again
}

func (l *looking) Write(p []byte) (int, error) {
	if l.left <= 0 {
		if err := l.room(); err != nil {
			return 0, err
		}
		l.left = perLook
	}
	l.left -= int64(len(p))
	return len(p), nil
}

func archiveError(err error, n int) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) {
		return fault.Wrap(fault.Invalid, err, "the build's context is not a whole tar archive: it ends, or has no header, after %d entries", n).
			WithRemedy("send what tar c writes, compressed by gzip or not")
	}
	return err
}

// entry notes an entry of the archive. What it returns is nil for the top itself.
func (c *Context) entry(h *tar.Header) (*Entry, error) {
	name, err := clean(h.Name)
	if err != nil || name == "." {
		return nil, err
	}
	if err := c.parents(name); err != nil {
		return nil, err
	}
	e := &Entry{Name: name, Mode: fs.FileMode(h.Mode) & 0o777, Time: h.ModTime}
	if h.Mode&0o1000 != 0 {
		e.Mode |= fs.ModeSticky
	}
	was := c.entries[name]
	switch h.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir:
		e.Mode |= fs.ModeDir
		if was != nil && was.Mode.IsDir() {
			was.Mode, was.Time = e.Mode, e.Time
			return was, nil
		}
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > maxName || strings.ContainsRune(h.Linkname, 0) {
			return nil, refusal("the symbolic link %s has a target of %d bytes, or one with a zero byte", quoted(h.Name), len(h.Linkname))
		}
		e.Mode, e.Link = fs.ModeSymlink|0o777, h.Linkname
	case tar.TypeLink:
		to, err := clean(h.Linkname)
		if err != nil {
			return nil, err
		}
		first := c.entries[to]
		if first == nil || !first.Mode.IsRegular() {
			return nil, refusal("the hard link %s leads to %s, which is not a file before it", quoted(h.Name), quoted(h.Linkname))
		}
		e.Mode, e.Size, e.Sum, e.at, e.from = first.Mode, first.Size, first.Sum, first.at, first.from
	default:
		return nil, refusal("%s is neither a file nor a directory nor a link", quoted(h.Name)).(*fault.Error).WithRemedy("leave it out, by .dockerignore")
	}
	if was != nil {
		return nil, refusal("it has %s twice", quoted(name))
	}
	c.entries[name] = e
	return e, nil
}

// clean is a name of the archive as a path below the top.
func clean(name string) (string, error) {
	if len(name) > maxName {
		return "", refusal("a name has %d bytes, more than %d", len(name), maxName)
	}
	at := strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if at == "" || at == "." {
		return ".", nil
	}
	if !fs.ValidPath(at) || strings.ContainsRune(at, 0) {
		return "", refusal("%s is not a path below its top", quoted(name))
	}
	if strings.Count(at, "/") >= maxDepth {
		return "", refusal("%s is more than %d directories deep", quoted(name), maxDepth)
	}
	return at, nil
}

// parents notes the directories that no entry was about.
func (c *Context) parents(name string) error {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if e := c.entries[dir]; e != nil {
			if !e.Mode.IsDir() {
				return refusal("%s is below %s, which is not a directory", quoted(name), quoted(dir))
			}
			return nil
		}
		c.entries[dir] = &Entry{Name: dir, Mode: fs.ModeDir | 0o755}
	}
}

// File returns the content of a file at the name, which may be "a/b" or "./a/b", of at most max bytes. One
// that is not there is fs.ErrNotExist.
func (c *Context) File(name string, max int64) ([]byte, error) {
	e, err := c.find(path.Clean("/" + name)[1:])
	if err != nil {
		return nil, err
	}
	if !e.Mode.IsRegular() || e.Size > max {
		return nil, refusal("%s is not a file, or has more than %d bytes", quoted(name), max)
	}
	return io.ReadAll(e.Open())
}

// find returns the entry at a path, through links, which lead to nothing above the top.
func (c *Context) find(name string) (*Entry, error) {
	rest := strings.Split(name, "/")
	at := "."
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		e := c.entries[path.Join(at, part)]
		if e == nil {
			return nil, fs.ErrNotExist
		}
		if e.Mode&fs.ModeSymlink == 0 {
			if at = e.Name; !e.Mode.IsDir() && len(rest) > 0 {
				return nil, fs.ErrNotExist
			}
			continue
		}
		if hops++; hops > maxHops {
			return nil, refusal("%s leads through more than %d links", quoted(name), maxHops)
		}
		if path.IsAbs(e.Link) {
			at = "."
		}
		rest = append(strings.Split(e.Link, "/"), rest...)
		if len(rest) > 2*maxName {
			return nil, refusal("%s leads through links without an end", quoted(name))
		}
	}
	return c.entries[at], nil
}

// remove takes the entry of a name, and what is below it, out of the context.
func (c *Context) remove(name string) {
	delete(c.entries, name)
	maps.DeleteFunc(c.entries, func(n string, _ *Entry) bool { return strings.HasPrefix(n, name+"/") })
	c.names = slices.Sorted(maps.Keys(c.entries))
}

// Found is what a source of COPY means: an entry, and all below it.
type Found struct {
	Base string   // the last name of the source as it was written
	Top  *Entry   // what it leads to
	Tree []*Entry // what is below Top, if that is a directory, by their names
}

// Find returns what a source of COPY means, which may have wildcards. None is fs.ErrNotExist.
func (c *Context) Find(source string) ([]Found, error) {
	name := path.Clean("/" + source)[1:]
	if !strings.ContainsAny(name, `*?[\`) {
		f, err := c.found(name)
		if err != nil {
			return nil, err
		}
		return []Found{f}, nil
	}
	if _, err := path.Match(name, ""); err != nil {
		return nil, refusal("%s is not a valid pattern", quoted(source))
	}
	var all []Found
	for _, n := range c.names {
		if ok, _ := path.Match(name, n); ok && n != "." {
			f, err := c.found(n)
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return nil, fs.ErrNotExist
	}
	return all, nil
}

func (c *Context) found(name string) (Found, error) {
	top, err := c.find(name)
	if err != nil {
		return Found{}, err
	}
	f := Found{Base: path.Base(name), Top: top}
	if !top.Mode.IsDir() {
		return f, nil
	}
	prefix := top.Name + "/"
	if top.Name == "." {
		prefix = ""
	}
	at, _ := slices.BinarySearch(c.names, prefix)
	for _, n := range c.names[at:] {
		if !strings.HasPrefix(n, prefix) {
			break
		}
		if n != "." {
			f.Tree = append(f.Tree, c.entries[n])
		}
	}
	return f, nil
}

// Hash returns what decides what a copy of it makes: names, modes, links and content, and no times.
func (f Found) Hash() [sha256.Size]byte {
	h := sha256.New()
	write := func(name string, e *Entry) {
		fmt.Fprintf(h, "%q %o %q %d %x\n", name, e.Mode, e.Link, e.Size, e.Sum)
	}
	if f.Top.Mode.IsDir() {
		fmt.Fprintf(h, "dir\n") // its name is not copied
	} else {
		write(f.Base, f.Top)
	}
	for _, e := range f.Tree {
		write(strings.TrimPrefix(strings.TrimPrefix(e.Name, f.Top.Name), "/"), e)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
