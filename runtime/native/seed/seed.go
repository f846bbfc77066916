// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package seed writes into a new layer what a sandbox with an account begins with: the lists of accounts, and the
// directories of the account. It does so before the layer is mounted, and before anything of a sandbox runs, so that no
// code of anybody's has been near the layer; the image is somebody's, and nothing in it is followed. Through the
// overlay the same takes milliseconds: it copies a file of the image up, and brings the copy to the disk, before the
// file can be replaced.
//
// A directory of the layer over one of the image's has the mode, the owner and the attributes of that one, as if the
// overlay had copied it.
package seed

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/accounts"
	"sandpit.dev/agent/server/dirs"
)

// A Seed is what is written into layers over one image. It does not change.
type Seed struct {
	steps []step
	size  int
}

// step makes a directory, or a file with a text.
type step struct {
	path  string
	file  bool
	text  []byte
	stat  unix.Stat_t // whose mode and owner it gets
	times []unix.Timespec
	attrs []attr
}

type attr struct {
	name  string
	value []byte
}

// Size is about how much memory it takes.
func (s *Seed) Size() int { return s.size }

// Account returns the seed of an account whose group has its number, too, as the agent would make it; nil where it
// is not sure that it can be made, see [accounts.Suits].
func Account(image int, uid uint32, name, home, workdir string) (*Seed, error) {
	if !accounts.Suits(image, int(uid), int(uid), name, home, workdir) {
		return nil, nil
	}
	s := new(Seed)
	lists, err := accounts.Plan(image, uid, name, home)
	if err == nil {
		err = lists.Each(func(name, text string) error { return s.list(image, "etc/"+name, []byte(text)) })
	}
	if err != nil {
		return nil, err
	}
	for _, dir := range accounts.Ordered(home, workdir) {
		if err := s.own(image, strings.Trim(dir, "/"), uid); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Lists returns the seed of the image's lists as they are: what replaces them later waits for no copy. A list that no
// account can be written to is left out.
func Lists(image int) (*Seed, error) {
	s := new(Seed)
	for _, name := range []string{"etc/passwd", "etc/group"} {
		fd, err := open(image, name, unix.O_RDONLY|unix.O_NONBLOCK)
		if err == unix.ENOENT || err == unix.ELOOP || err == unix.ENOTDIR || err == unix.ENXIO {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		text, err := whole(fd)
		_ = unix.Close(fd)
		if err == nil && text != nil {
			err = s.list(image, name, text)
		}
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: name, Err: err}
		}
	}
	for i := range s.steps {
		if st := &s.steps[i]; st.file {
			st.times = []unix.Timespec{st.stat.Atim, st.stat.Mtim} // it is the image's
		}
	}
	return s, nil
}

// whole reads a plain file of a bounded size, and gives nil for what is none.
func whole(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > accounts.MaxFile {
		return nil, err
	}
	text := make([]byte, st.Size)
	for n := 0; n < len(text); {
		m, err := unix.Pread(fd, text[n:], int64(n))
		if err != nil || m == 0 { // an image does not change
			return nil, err
		}
		n += m
	}
	return text, nil
}

// list adds a file of the image's with another text.
func (s *Seed) list(image int, name string, text []byte) error {
	if err := s.above(image, name, 0); err != nil {
		return err
	}
	one, err := like(image, name)
	if err != nil {
		return err
	}
	one.file, one.text = true, text
	s.add(one)
	return nil
}

// own adds a directory of the user's, unless the image has it.
func (s *Seed) own(image int, name string, uid uint32) error {
	if _, err := like(image, name); err != unix.ENOENT {
		return err
	}
	if err := s.above(image, name, uid); err != nil {
		return err
	}
	if at := s.find(name); at != nil { // the other directory is in it
		at.stat.Uid, at.stat.Gid = uid, uid
		return nil
	}
	one := s.fresh(image, name)
	one.stat.Uid, one.stat.Gid = uid, uid
	s.add(one)
	return nil
}

// fresh is a directory that the image has not, as the kernel makes it in the one above, which is there.
func (s *Seed) fresh(image int, name string) step {
	one := step{path: name, stat: unix.Stat_t{Mode: 0o755}}
	in, _ := like(image, ".")
	if at := s.find(path.Dir(name)); at != nil {
		in = *at
	}
	if in.stat.Mode&unix.S_ISGID != 0 {
		one.stat.Mode |= unix.S_ISGID
		one.stat.Gid = in.stat.Gid
	}
	return one
}

// above adds the directories above a path: as the image has them, else as new ones. A new one is the user's where the
// one that it is in is, else root's.
func (s *Seed) above(image int, name string, uid uint32) error {
	name = path.Dir(name)
	if name == "." || s.find(name) != nil {
		return nil
	}
	if err := s.above(image, name, uid); err != nil {
		return err
	}
	one, err := like(image, name)
	if err == unix.ENOENT {
		one, err = s.fresh(image, name), nil
		if in := s.find(path.Dir(name)); in != nil && in.stat.Uid == uid {
			one.stat.Uid, one.stat.Gid = uid, uid
		}
	}
	if err == nil {
		s.add(one)
	}
	return err
}

func (s *Seed) find(name string) *step {
	for i := range s.steps {
		if s.steps[i].path == name {
			return &s.steps[i]
		}
	}
	return nil
}

func (s *Seed) add(one step) {
	s.size += len(one.path) + len(one.text) + 256
	for _, a := range one.attrs {
		s.size += len(a.name) + len(a.value)
	}
	s.steps = append(s.steps, one)
}

// like is a step with the mode, the owner and the attributes of what an image has. The error of what it has not is unix.ENOENT.
func like(image int, name string) (step, error) {
	one := step{path: name}
	fd, err := open(image, name, unix.O_PATH)
	if err != nil {
		return one, err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &one.stat); err != nil {
		return one, err
	}
	one.attrs, err = attrsOf("/proc/self/fd/" + strconv.Itoa(fd))
	return one, err
}

// attrsOf reads the extended attributes of a file, but those that are an overlay's own.
func attrsOf(file string) (all []attr, err error) {
	buf := make([]byte, 64<<10)
	n, err := unix.Listxattr(file, buf)
	if err == unix.EOPNOTSUPP {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for name := range bytes.SplitSeq(buf[:n], []byte{0}) {
		if len(name) == 0 || bytes.HasPrefix(name, []byte("trusted.")) {
			continue
		}
		value := make([]byte, 64<<10)
		size, err := unix.Getxattr(file, string(name), value)
		if err != nil {
			return nil, err
		}
		all = append(all, attr{string(name), bytes.Clone(value[:size])})
	}
	return all, nil
}

// open opens what is beneath a directory, through no link.
func open(at int, name string, flags uint64) (int, error) {
	return dirs.Openat2(at, name, unix.OpenHow{
		Flags:   flags | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// Write makes the files in an empty layer, which is of no use after an error: it is nobody's but the caller's yet.
func (s *Seed) Write(upper int) error {
	for i := range s.steps {
		if err := s.steps[i].write(upper); err != nil {
			return &os.PathError{Op: "make in a new layer", Path: s.steps[i].path, Err: err}
		}
	}
	return nil
}

func (s *step) write(upper int) (err error) {
	mode := s.stat.Mode & 0o7777
	flags := uint64(unix.O_RDONLY | unix.O_DIRECTORY)
	if s.file {
		flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL
	} else if err := unix.Mkdirat(upper, s.path, mode); err != nil {
		return err
	}
	how := unix.OpenHow{Flags: flags | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	if s.file {
		how.Mode = uint64(mode)
	}
	fd, err := dirs.Openat2(upper, s.path, how)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), s.path)
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	if s.file {
		if _, err := f.Write(s.text); err != nil {
			return err
		}
	}
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		return err
	}
	if is.Uid != s.stat.Uid || is.Gid != s.stat.Gid {
		if err := unix.Fchown(fd, int(s.stat.Uid), int(s.stat.Gid)); err != nil {
			return err
		}
		is.Mode = 0 // it may have changed
	}
	if is.Mode&0o7777 != mode { // the server's umask, too
		if err := unix.Fchmod(fd, mode); err != nil {
			return err
		}
	}
	for _, a := range s.attrs {
		if err := unix.Fsetxattr(fd, a.name, a.value, 0); err != nil && err != unix.EOPNOTSUPP {
			return err
		}
	}
	if s.times != nil {
		return unix.UtimesNanoAt(upper, s.path, s.times, unix.AT_SYMLINK_NOFOLLOW)
	}
	return nil
}
