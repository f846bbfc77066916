// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"sandpit.dev/fault"
	"sandpit.dev/internal/glob"
)

// Packer writes files of this machine, and what other archives hold, as one tar archive.
type Packer struct {
	c       *Copy
	ctx     context.Context
	out     *bufio.Writer
	tw      *tar.Writer
	exclude []glob.Glob
	first   map[fileID]string // the name of a file that has others
	buf     []byte
}

// maxHardLinks is of how many files with several names the first is remembered; other names of more become
// files of their own.
const maxHardLinks = 100_000

// NewPacker returns a Packer that writes to w.
func (c *Copy) NewPacker(ctx context.Context, w io.Writer) (*Packer, error) {
	out := bufio.NewWriterSize(w, streamBuffer)
	p := &Packer{c: c, ctx: ctx, out: out, tw: tar.NewWriter(out), first: make(map[fileID]string), buf: make([]byte, copyBuffer)}
	for _, text := range c.Exclude {
		g, ok := glob.New(text)
		if !ok || text == "" {
			return nil, fault.InvalidField("exclude", "%q is not a valid pattern", text).WithRemedy("write it as *.log, or with a slash for paths, as build/**")
		}
		p.exclude = append(p.exclude, g)
	}
	return p, nil
}

// Close ends the archive.
func (p *Packer) Close() error {
	return errors.Join(p.tw.Close(), p.out.Flush())
}

// Add packs a file or a tree under a name; "." packs what is in a directory. A link that is from itself is followed.
func (p *Packer) Add(from, as string) error {
	info, err := os.Stat(from)
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "%s cannot be copied", from)
	}
	if !info.IsDir() {
		return p.file(from, as, info, func() (*os.File, error) { return os.OpenFile(from, os.O_RDONLY|nonblocking, 0) })
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return fault.Wrap(fault.Denied, err, "%s cannot be read", from)
	}
	defer root.Close()
	return p.tree(root, from, as, nil, info, nil)
}

// tree packs a directory and what is in it. rel is its path below the top, in parts, and above what it is in.
func (p *Packer) tree(dir *os.Root, from, as string, rel []string, info fs.FileInfo, above []fs.FileInfo) error {
	if err := p.header(&tar.Header{Typeflag: tar.TypeDir, Name: as + "/"}, info); err != nil {
		return err
	}
	d, err := dir.Open(".")
	if err != nil {
		p.c.Left(from, reason(err))
		return nil
	}
	defer d.Close()
	above = append(above, info)
	for {
		batch, err := d.ReadDir(256)
		for _, e := range batch {
			if err := p.ctx.Err(); err != nil {
				return err
			}
			if err := p.child(dir, e.Name(), from, as, rel, above); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			p.c.Left(from, "its rest: "+reason(err))
			return nil
		}
	}
}

// child packs an entry of a directory. It works through the open directory; only what a followed link leads
// to is opened by its path, and then has to be what was looked at.
func (p *Packer) child(dir *os.Root, name, from, as string, rel []string, above []fs.FileInfo) error {
	rel = append(rel[:len(rel):len(rel)], name)
	for i := range p.exclude {
		if p.exclude[i].Match(rel) {
			return nil
		}
	}
	from, as = from+string(filepath.Separator)+name, as+"/"+name // not joined: that would clean what a link has made of ..
	info, err := dir.Lstat(name)
	link := err == nil && info.Mode()&fs.ModeSymlink != 0
	if link && p.c.Follow {
		info, err = os.Stat(from)
	}
	switch {
	case err != nil:
		p.c.Left(from, reason(err))
		return nil
	case info.IsDir():
		return p.below(dir, link, name, from, as, rel, info, above)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(name)
		if err != nil {
			p.c.Left(from, reason(err))
			return nil
		}
		return p.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: as, Linkname: filepath.ToSlash(target)}, info)
	case !info.Mode().IsRegular():
		p.c.Left(from, kindOf(info.Mode()))
		return nil
	}
	return p.file(from, as, info, func() (*os.File, error) {
		if link {
			return os.OpenFile(from, os.O_RDONLY|nonblocking, 0)
		}
		return dir.OpenFile(name, os.O_RDONLY|nonblocking, 0)
	})
}

// below packs a directory in another.
func (p *Packer) below(dir *os.Root, link bool, name, from, as string, rel []string, info fs.FileInfo, above []fs.FileInfo) error {
	for _, a := range above {
		if os.SameFile(a, info) {
			p.c.Left(from, "a link to a directory that it is in")
			return nil
		}
	}
	if len(above) >= maxDepth {
		p.c.Left(from, "it is too deep in the tree")
		return nil
	}
	open := dir.OpenRoot
	if link {
		name, open = from, os.OpenRoot
	}
	root, err := open(name)
	if err != nil {
		p.c.Left(from, reason(err))
		return nil
	}
	defer root.Close()
	if now, err := root.Stat("."); err != nil || !os.SameFile(now, info) {
		p.c.Left(from, "it changed")
		return nil
	}
	return p.tree(root, from, as, rel, info, above)
}

// file packs a file. What is missing at its end, as it has become shorter, is zero, and told.
func (p *Packer) file(from, as string, info fs.FileInfo, open func() (*os.File, error)) error {
	id, many := identity(info)
	if first, again := p.first[id]; many && again {
		return p.header(&tar.Header{Typeflag: tar.TypeLink, Name: as, Linkname: first}, info)
	}
	f, err := open()
	if err != nil {
		p.c.Left(from, reason(err))
		return nil
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil || !now.Mode().IsRegular() || !os.SameFile(now, info) {
		p.c.Left(from, "it changed")
		return nil
	}
	if many && len(p.first) < maxHardLinks {
		p.first[id] = as
	}
	size := now.Size()
	if err := p.header(&tar.Header{Typeflag: tar.TypeReg, Name: as, Size: size}, now); err != nil {
		return err
	}
	r := &counted{r: io.LimitReader(f, size), c: p.c, name: filepath.Base(from), size: size}
	n, err := io.CopyBuffer(p.tw, r, p.buf)
	if err != nil && r.err == nil {
		return err
	}
	if n == size {
		return nil
	}
	why := "it became shorter while it was read"
	if r.err != nil {
		why = reason(r.err)
	}
	p.c.Left(from, "its end: "+why)
	_, err = io.CopyN(p.tw, zeros{}, size-n)
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// header writes the header of a local file. Owners are this machine's affair.
func (p *Packer) header(h *tar.Header, info fs.FileInfo) error {
	h.Mode, h.ModTime, h.Format = int64(info.Mode().Perm()), info.ModTime(), tar.FormatPAX
	if info.Mode()&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	return p.tw.WriteHeader(h)
}

// reason is an error without the path, which is told apart.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err.Error()
	}
	return err.Error()
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "not a file"
}
