// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// copyStep is how many bytes are copied between two looks at the context.
const copyStep = 16 << 20

// copyTree copies the tree fromName in from as toName into to, which has nothing else
// of that name: owners, modes, times, extended attributes, whiteouts, hard links and
// holes included, and no device. Names beginning with stalePrefix in to are its own;
// they stay until they are cleaned up. It holds as many descriptors and as much memory
// for any tree. Where it fails, what there is of the copy is the caller's to remove.
func copyTree(ctx context.Context, from int, fromName string, to int, toName string) error {
	c := &copier{ctx: ctx}
	if err := c.copy(from, fromName, to, toName); err != nil {
		return fmt.Errorf("copy a tree: %w", err)
	}
	return nil
}

// linksName is the directory, beside the copy, that has each file of several names.
const linksName = stalePrefix + "links"

type copier struct {
	ctx     context.Context
	to      *chain
	top     int  // what the copy is made in
	links   int  // the directory linksName, -1 until it is needed
	noRange bool // the kernel does not copy between these files
	// noClone: the file system has no files that share what they hold, or not with
	// the source.
	noClone bool
	buf     []byte
}

func (c *copier) copy(from int, fromName string, to int, toName string) (err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(from, fromName, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if err := unix.Mkdirat(to, toName, 0o700); err != nil {
		return err
	}
	if c.to, err = openChain(to, toName); err != nil {
		return err
	}
	defer c.to.close()
	c.top, c.links = to, -1
	defer func() {
		if c.links >= 0 {
			unix.Close(c.links)
		}
	}()
	return walkTree(c.ctx, from, fromName, c)
}

// enter implements visitor.
func (c *copier) enter(_ int, name string, _ *unix.Stat_t) error {
	if err := unix.Mkdirat(c.to.fd(), name, 0o700); err != nil {
		return err
	}
	return c.to.down(name)
}

// leave implements visitor. A directory gets its attributes when all is in it, its
// times above all.
func (c *copier) leave(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if err := c.setAttributes(openNode(fd), openNode(c.to.fd()), &st); err != nil {
		return err
	}
	if c.to.depth() == 0 {
		return nil
	}
	_, err := c.to.up()
	return err
}

// file implements visitor.
func (c *copier) file(dir int, name string, st *unix.Stat_t) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if st.Nlink > 1 {
		return c.linked(dir, name, st)
	}
	return c.single(dir, name, st, c.to.fd(), name)
}

// linked copies a file of several names once, and links it for the others.
func (c *copier) linked(dir int, name string, st *unix.Stat_t) (err error) {
	if c.links < 0 {
		if c.links, err = ensureDir(c.top, linksName); err != nil {
			return err
		}
	}
	key := strconv.FormatUint(st.Ino, 36)
	err = unix.Linkat(c.links, key, c.to.fd(), name, 0)
	if err == unix.ENOENT {
		if err = c.single(dir, name, st, c.links, key); err != nil {
			return err
		}
		err = unix.Linkat(c.links, key, c.to.fd(), name, 0)
	}
	if err == unix.EMLINK {
		// As many names as there can be: this is the last, unless there are more
		// than the source's file system could have.
		err = unix.Renameat2(c.links, key, c.to.fd(), name, unix.RENAME_NOREPLACE)
	}
	return ignore(err, unix.ENOENT) // of a device, which is not copied
}

// single copies one file to the name toName in to.
func (c *copier) single(dir int, name string, st *unix.Stat_t, to int, toName string) error {
	var err error
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return c.regular(dir, name, st, to, toName)
	case unix.S_IFLNK:
		var target string
		if target, err = readLink(dir, name); err == nil {
			err = unix.Symlinkat(target, to, toName)
		}
	case unix.S_IFIFO, unix.S_IFSOCK:
		err = unix.Mknodat(to, toName, st.Mode&unix.S_IFMT|0o600, 0)
	case unix.S_IFCHR:
		if !isWhiteout(st) {
			return nil
		}
		err = unix.Mknodat(to, toName, unix.S_IFCHR|0o600, 0)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	return c.setAttributes(namedNode(dir, name), namedNode(to, toName), st)
}

func (c *copier) regular(dir int, name string, st *unix.Stat_t, to int, toName string) error {
	in, err := openFile(dir, name, st)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	out, err := unix.Openat(to, toName, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	if st.Size > 0 {
		if err := c.content(in, out, st.Size); err != nil {
			return err
		}
	}
	return c.setAttributes(openNode(in), openNode(out), st)
}

// content makes out share what in holds, or copies it but for the holes.
func (c *copier) content(in, out int, size int64) error {
	if !c.noClone {
		if unix.IoctlFileClone(out, in) == nil {
			return nil
		}
		c.noClone = true
	}
	for at := int64(0); at < size; {
		begin, err := unix.Seek(in, at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break // a hole up to the end
		}
		if err != nil {
			return err
		}
		end, err := unix.Seek(in, begin, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if err := c.span(in, out, begin, min(end, size)); err != nil {
			return err
		}
		at = end
	}
	return unix.Ftruncate(out, size)
}

// span copies the bytes from begin to end.
func (c *copier) span(in, out int, begin, end int64) error {
	for begin < end {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		n, err := c.step(in, out, begin, end)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil // the file was cut meanwhile
		}
		begin += int64(n)
	}
	return nil
}

// step copies some of the bytes from begin to end, in the kernel where it can.
func (c *copier) step(in, out int, begin, end int64) (int, error) {
	if !c.noRange {
		from, to := begin, begin
		n, err := copyRange(in, &from, out, &to, int(min(end-begin, copyStep)))
		switch err {
		case unix.EXDEV, unix.EOPNOTSUPP, unix.ENOSYS, unix.EINVAL:
			c.noRange = true
		default:
			return n, err
		}
	}
	if c.buf == nil {
		c.buf = make([]byte, 256<<10)
	}
	n, err := unix.Pread(in, c.buf[:min(int64(len(c.buf)), end-begin)], begin)
	if err != nil || n <= 0 {
		return 0, err
	}
	return unix.Pwrite(out, c.buf[:n], begin)
}

func copyRange(in int, from *int64, out int, to *int64, n int) (int, error) {
	for {
		got, err := unix.CopyFileRange(in, from, out, to, n, 0)
		if err != unix.EINTR {
			return got, err
		}
	}
}

// setAttributes gives a copy the owner, mode, attributes and times of its source, in the
// order in which none of them undoes another.
func (c *copier) setAttributes(from, to node, st *unix.Stat_t) error {
	if err := to.chown(int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		if err := to.chmod(st.Mode & 0o7777); err != nil {
			return err
		}
	}
	if err := copyAttrs(from, to); err != nil {
		return err
	}
	return to.touch(st.Atim, st.Mtim)
}

func (n node) chown(uid, gid int) error {
	if n.fd >= 0 {
		return unix.Fchown(n.fd, uid, gid)
	}
	return unix.Fchownat(n.dir, n.name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
}

// chmod is not for links: by name it would follow one.
func (n node) chmod(mode uint32) error {
	if n.fd >= 0 {
		return unix.Fchmod(n.fd, mode)
	}
	return unix.Fchmodat(n.dir, n.name, mode, 0)
}

func (n node) touch(access, change unix.Timespec) error {
	times := []unix.Timespec{access, change}
	if n.fd >= 0 {
		return unix.UtimesNanoAt(n.fd, "", times, unix.AT_EMPTY_PATH)
	}
	return unix.UtimesNanoAt(n.dir, n.name, times, unix.AT_SYMLINK_NOFOLLOW)
}

// openFile opens the regular file that st is of, and waits for no fifo.
func openFile(dir int, name string, st *unix.Stat_t) (int, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOATIME|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		unix.Close(fd)
		return -1, err
	}
	if now.Ino != st.Ino || now.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return -1, errMoved
	}
	return fd, nil
}

func readLink(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	return string(buf[:max(n, 0)]), err
}
