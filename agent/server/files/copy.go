// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// maxCopied bounds the entries of a tree that is moved by copying.
const maxCopied = 200_000

// copier copies regular files, directories and links, with permissions and
// times, and owners where the user may set them. It works through open
// directories, follows no link, and stays on one mount.
type copier struct {
	ctx    context.Context
	v      view.View
	copied int
}

func (c *copier) entry(src int, from string, dst int, to string, depth int) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.copied++; c.copied > maxCopied || depth > maxDepth {
		return fault.New(fault.TooLarge, "move: a tree of more than %d entries or %d levels cannot be moved between file systems", maxCopied, maxDepth).
			WithRemedy("run mv in the sandbox")
	}
	var st unix.Stat_t
	var err error
	c.v.Do(func() {
		if err = unix.Fstatat(src, from, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
			return
		}
		var b [unix.PathMax]byte
		var n int
		if n, err = unix.Readlinkat(src, from, b[:]); err == nil {
			err = unix.Symlinkat(string(b[:n]), dst, to)
		}
	})
	if err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil
	case unix.S_IFREG:
		return c.file(src, from, dst, to)
	case unix.S_IFDIR:
		return c.dir(src, from, dst, to, depth)
	}
	return fault.InvalidField("path", "%q is %s, which cannot be moved between file systems", wire.EscapeName(from), kind(st.Mode))
}

func (c *copier) file(src int, from string, dst int, to string) error {
	in, out := -1, -1
	var st unix.Stat_t
	var err error
	c.v.Do(func() {
		in, err = dirs.Openat2(src, from, unix.OpenHow{
			Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
		})
		if err == nil {
			err = checkRegular(in, from, &st)
		}
		if err == nil {
			out, err = unix.Openat(dst, to, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		}
	})
	defer descriptor.CloseAll([]int{in, out})
	if err != nil {
		return err
	}
	if err := c.bytes(in, out); err != nil {
		return err
	}
	return c.finish(out, &st)
}

// bytes copies within the kernel where the file systems can.
func (c *copier) bytes(in, out int) error {
	const piece = 4 << 20
	buf := []byte(nil)
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		var n int
		var err error
		if buf == nil {
			n, err = unix.CopyFileRange(in, nil, out, nil, piece, 0)
			if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
				buf = make([]byte, wire.MaxData)
				continue
			}
		} else if n, err = unix.Read(in, buf); err == nil {
			for b := buf[:n]; len(b) > 0 && err == nil; {
				var m int
				if m, err = unix.Write(out, b); err == nil {
					b = b[m:]
				}
			}
		}
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return nil
		}
	}
}

// finish sets on a copy what its original had.
func (c *copier) finish(fd int, st *unix.Stat_t) (err error) {
	c.v.Do(func() {
		mode := st.Mode & 0o7777
		if unix.Fchown(fd, int(st.Uid), int(st.Gid)) != nil {
			mode &^= unix.S_ISUID | unix.S_ISGID
		}
		if err = unix.Fchmod(fd, mode); err != nil {
			return
		}
		times := []unix.Timespec{st.Atim, st.Mtim}
		err = unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH)
	})
	return err
}

func (c *copier) dir(src int, from string, dst int, to string, depth int) error {
	t := treeRemover{ctx: c.ctx, v: c.v}
	in, err := t.open(src, from)
	if err != nil {
		return err
	}
	defer in.Close()
	var st unix.Stat_t
	c.v.Do(func() {
		if err = unix.Fstat(int(in.Fd()), &st); err == nil {
			err = unix.Mkdirat(dst, to, 0o700)
		}
	})
	if err != nil {
		return err
	}
	out, err := t.open(dst, to)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := c.entries(in, int(out.Fd()), depth); err != nil {
		return err
	}
	return c.finish(int(out.Fd()), &st)
}

func (c *copier) entries(in *os.File, out, depth int) error {
	for {
		names, _ := in.Readdirnames(nameBatch)
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := c.entry(int(in.Fd()), name, out, name, depth+1); err != nil {
				return err
			}
		}
	}
}
