// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

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
	// packedAtOnce is how many names are looked at in one turn of the view's.
	packedAtOnce = 64
	// packedArena holds the small files of one turn, of at most packedSmall bytes each.
	packedArena = 256 << 10
	packedSmall = 64 << 10
	// maxPackDepth is how deep a tree is packed, at one open directory a level.
	maxPackDepth = 200
	// maxHardLinks is of how many files with several names the first is remembered; other names
	// of more become files of their own.
	maxHardLinks = 50_000
)

// packer writes a tree as a tar archive, with the rights of the view's user. It works through
// Open directories, so that a tree that others change meanwhile leads it nowhere else.
type packer struct {
	s       *Service
	ctx     context.Context
	v       view.View
	tw      *tar.Writer
	follow  bool
	exclude []glob.Glob
	first   map[inode]string // the name of a file that has others
	above   []inode          // the directories that the walk is in
	arena   []byte
	sum     wire.Packed
}

type inode struct{ dev, ino uint64 }

// packed is one entry of a directory, as it was found.
type packed struct {
	name   string
	st     unix.Stat_t
	target string // of a link
	data   []byte // of a small file
	fd     int    // of one that is not; below 0: none
	why    string // it is left out
}

// Pack sends a file or a tree as a tar archive.
func (s *Service) Pack(ctx context.Context, c *call.Conn, req *wire.Request) error {
	v, err := s.o.View(req.User, req.AsRoot)
	if err != nil {
		return err
	}
	p, err := s.Absolute("path", req.Path)
	if err != nil {
		return err
	}
	if req.Pack == nil {
		req.Pack = &wire.Pack{}
	}
	out := wire.NewDataWriter(c)
	k := &packer{
		s: s, ctx: ctx, v: v, tw: tar.NewWriter(out), follow: req.Pack.Follow,
		first: make(map[inode]string), arena: make([]byte, packedArena),
	}
	if k.exclude, err = excludes(req.Pack.Exclude); err != nil {
		return err
	}
	top := packed{fd: -1}
	var dir *os.File
	v.Do(func() { dir, err = k.open(p, &top) })
	if err != nil {
		return fileFault(v, "read", p, err)
	}
	defer descriptor.CloseAll([]int{top.fd})
	fi := describe(baseOf(p), &top.st)
	fi.Path, fi.Target = shown(p), wire.EscapeName(top.target)
	if err := c.Send(wire.Reply, fi); err != nil {
		if dir != nil {
			_ = dir.Close()
		}
		return err
	}
	if dir != nil {
		err = k.tree(dir, top.name, p, nil, &top.st)
	} else {
		err = k.entry(top.name, &top)
	}
	if err == nil {
		err = k.tw.Close()
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fileFault(v, "read", p, err)
	}
	return c.Send(wire.Done, k.sum)
}

// excludes reads patterns.
func excludes(patterns []string) ([]glob.Glob, error) {
	if len(patterns) > wire.MaxExclude {
		return nil, fault.InvalidField("exclude", "%d patterns are more than %d", len(patterns), wire.MaxExclude)
	}
	var all []glob.Glob
	for _, text := range patterns {
		g, ok := glob.New(text)
		if !ok || text == "" || len(text) > wire.MaxExcludeBytes {
			return nil, fault.InvalidField("exclude", "%q is not a valid name pattern of at most %d bytes", message.Clip(text, 80), wire.MaxExcludeBytes).
				WithRemedy("write it as *.log, or with a slash for paths, as build/**")
		}
		all = append(all, g)
	}
	return all, nil
}

// Open opens what is packed: dir is set for a directory. A link at the end of the path is
// packed as such, unless links are followed or the path ends in a slash or a dot. It runs within Do.
func (k *packer) open(p string, top *packed) (dir *os.File, err error) {
	_, name := split(p)
	if top.name = name; name == "" {
		top.name = "."
	}
	flags := unix.O_PATH
	if name != "" && !k.follow && p[len(p)-1] != '/' {
		flags |= unix.O_NOFOLLOW
	}
	look, err := k.s.Open(p, flags)
	if err != nil {
		return nil, err
	}
	defer unix.Close(look)
	if err := unix.Fstat(look, &top.st); err != nil {
		return nil, err
	}
	switch top.st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		fd, st, err := k.s.openListed(p)
		if err != nil {
			return nil, err
		}
		top.st = st
		return os.NewFile(uintptr(fd), "directory"), nil
	case unix.S_IFLNK:
		var b [unix.PathMax]byte
		n, err := unix.Readlinkat(look, "", b[:])
		top.target = string(b[:max(n, 0)])
		return nil, err
	case unix.S_IFREG:
		top.fd, top.st, err = k.s.openRegular(p, unix.O_RDONLY)
		return nil, err
	}
	return nil, fault.InvalidField("path", "%q is %s, which an archive cannot hold", message.Clip(shown(p), 400), kind(top.st.Mode))
}

// tree packs a directory and what is in it, and closes it. name is its name in the archive, full its
// path and rel that below the top.
func (k *packer) tree(dir *os.File, name, full string, rel []string, st *unix.Stat_t) error {
	defer dir.Close()
	if err := k.header(tar.TypeDir, name+"/", st, "", 0); err != nil {
		return err
	}
	k.above = append(k.above, inode{st.Dev, st.Ino})
	defer func() { k.above = k.above[:len(k.above)-1] }()
	for {
		names, readErr := dir.Readdirnames(nameBatch)
		for len(names) > 0 {
			var found []packed
			var n int
			k.v.Do(func() { found, n = k.look(int(dir.Fd()), full, rel, names) })
			names = names[n:]
			if err := k.entries(dir, name, full, rel, found); err != nil {
				return err
			}
		}
		switch {
		case readErr == io.EOF:
			return nil
		case readErr != nil:
			return k.leave(name, "its rest: "+message.Of(readErr))
		}
	}
}

// entries packs what look found: directories last, for what they hold takes the arena.
func (k *packer) entries(dir *os.File, name, full string, rel []string, found []packed) error {
	defer func() {
		for _, f := range found {
			descriptor.CloseAll([]int{f.fd})
		}
	}()
	for i := range found {
		if f := &found[i]; f.why != "" || f.st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if err := k.entry(name+"/"+f.name, f); err != nil {
				return err
			}
		}
	}
	for i := range found {
		f := &found[i]
		if f.why != "" || f.st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		if err := k.ctx.Err(); err != nil {
			return err
		}
		below, err := k.below(dir, full, f)
		if err != nil {
			if err := k.leave(name+"/"+f.name, leftWord(err)); err != nil {
				return err
			}
			continue
		}
		if err := k.tree(below, name+"/"+f.name, full+"/"+f.name, append(rel[:len(rel):len(rel)], f.name), &f.st); err != nil {
			return err
		}
	}
	return nil
}

// Reasons of this file's to leave something out.
var (
	errTooDeep = errors.New("it is too deep in the tree")
	errLoop    = errors.New("a link to a directory that it is in")
)

// below opens a directory in one that is open.
func (k *packer) below(dir *os.File, full string, f *packed) (below *os.File, err error) {
	if len(k.above) >= maxPackDepth {
		return nil, errTooDeep
	}
	k.v.Do(func() {
		var fd int
		if f.target != "" {
			fd, f.st, err = k.s.openListed(full + "/" + f.name)
		} else {
			fd, err = dirs.Openat2(int(dir.Fd()), f.name, unix.OpenHow{
				Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
				Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
			})
			if err == nil {
				if err = dirs.CheckStorage(fd); err == nil {
					err = unix.Fstat(fd, &f.st)
				}
				if err != nil {
					_ = unix.Close(fd)
				}
			}
		}
		if err == nil {
			below = os.NewFile(uintptr(fd), "directory")
		}
	})
	if err == nil && slices.Contains(k.above, inode{f.st.Dev, f.st.Ino}) {
		_ = below.Close()
		return nil, errLoop
	}
	return below, err
}

// entry packs what is no directory.
func (k *packer) entry(name string, f *packed) error {
	switch {
	case f.why != "":
		return k.leave(name, f.why)
	case f.st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return k.header(tar.TypeSymlink, name, &f.st, f.target, 0)
	case f.st.Mode&unix.S_IFMT != unix.S_IFREG:
		return k.leave(name, kind(f.st.Mode))
	}
	if f.st.Nlink > 1 {
		id := inode{f.st.Dev, f.st.Ino}
		if first, again := k.first[id]; again {
			return k.header(tar.TypeLink, name, &f.st, first, 0)
		}
		if len(k.first) < maxHardLinks {
			k.first[id] = name
		}
	}
	if err := k.header(tar.TypeReg, name, &f.st, "", f.st.Size); err != nil {
		return err
	}
	k.sum.Bytes += f.st.Size
	if f.fd < 0 {
		_, err := k.tw.Write(f.data)
		return err
	}
	return k.content(name, f)
}

// content packs a file that is open. What is missing at its end, as it has become shorter, is zero.
func (k *packer) content(name string, f *packed) error {
	buf := k.s.o.Buffers.Get()
	defer k.s.o.Buffers.Put(buf)
	_ = unix.Fadvise(f.fd, 0, 0, unix.FADV_SEQUENTIAL)
	short := ""
	for off := int64(0); off < f.st.Size; {
		part := buf[:min(int64(len(buf)), f.st.Size-off)]
		if short == "" {
			n, err := unix.Pread(f.fd, part, off)
			switch {
			case err == unix.EINTR:
				continue
			case err != nil:
				short = message.Of(err)
			case n == 0:
				short = "it became shorter while it was read"
			}
			if n > 0 {
				part = part[:n]
			}
		}
		if short != "" {
			clear(part)
		}
		if _, err := k.tw.Write(part); err != nil {
			return err
		}
		off += int64(len(part))
		if err := k.ctx.Err(); err != nil {
			return err
		}
	}
	if short != "" {
		return k.leave(name, "its end: "+short)
	}
	return nil
}

func (k *packer) header(kind byte, name string, st *unix.Stat_t, target string, size int64) error {
	k.sum.Entries++
	return k.tw.WriteHeader(&tar.Header{
		Typeflag: kind, Name: name, Linkname: target, Size: size, Mode: int64(st.Mode & 0o7777),
		Uid: int(st.Uid), Gid: int(st.Gid), ModTime: time.Unix(st.Mtim.Unix()), Format: tar.FormatPAX,
	})
}
