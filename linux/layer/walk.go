// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bytes"
	"context"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// How much of a directory is read at once. Deep down it is less, as there can be a
// part of a listing in memory for each level.
const (
	readSize     = 32 << 10
	readSizeDeep = 4 << 10
	deep         = 64
)

// A visitor sees a tree of which only a part is ever in memory. It is told of a
// directory before and after what is in it.
type visitor interface {
	// file sees what is no directory.
	file(dir int, name string, st *unix.Stat_t) error
	// enter sees a directory, and leave the same one, open, afterwards.
	enter(dir int, name string, st *unix.Stat_t) error
	leave(fd int) error
}

// walkTree goes through the tree below name in dir, links not followed, in the order
// of the disk. What vanishes meanwhile is left out. The top is left, and not entered.
func walkTree(ctx context.Context, dir int, name string, v visitor) error {
	c, err := openChain(dir, name)
	if err != nil {
		return err
	}
	defer c.close()
	listings := []listing{{}}
	buf := make([]byte, readSize)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		l := &listings[len(listings)-1]
		if n := len(l.dirs); n > 0 {
			sub := l.dirs[n-1]
			l.dirs = l.dirs[:n-1]
			entered, err := enter(c, sub, v)
			if err != nil {
				return err
			}
			if entered {
				listings = append(listings, listing{})
			}
			continue
		}
		entries, err := l.next(c.fd(), buf, len(listings))
		if err != nil {
			return err
		}
		for _, e := range entries {
			var st unix.Stat_t
			err := unix.Fstatat(c.fd(), e, &st, unix.AT_SYMLINK_NOFOLLOW)
			if err == unix.ENOENT {
				continue
			}
			if err != nil {
				return err
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				l.dirs = append(l.dirs, e)
			} else if err := v.file(c.fd(), e, &st); err != nil {
				return err
			}
		}
		if len(entries) > 0 {
			continue
		}
		if err := v.leave(c.fd()); err != nil {
			return err
		}
		if len(listings) == 1 {
			return nil
		}
		opened, err := c.up()
		if err != nil {
			return err
		}
		listings = listings[:len(listings)-1]
		if opened {
			if err := listings[len(listings)-1].resume(c.fd()); err != nil {
				return err
			}
		}
	}
}

// enter goes into a directory, if it is still there.
func enter(c *chain, name string, v visitor) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstatat(c.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false, errMoved
	}
	if err == unix.ENOENT {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	dir := c.fd()
	if err := v.enter(dir, name, &st); err != nil {
		return false, err
	}
	return true, c.down(name)
}

// listing is how far a directory was read.
type listing struct {
	dirs   []string // directories in the last part, which are still to be entered
	offset int64    // where the next part begins
	done   bool
}

// next reads the next part of a directory; nothing: that was all.
func (l *listing) next(fd int, buf []byte, depth int) ([]string, error) {
	if depth > deep {
		buf = buf[:readSizeDeep]
	}
	for !l.done {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		l.done = n == 0
		var names []string
		names, l.offset = parseDirents(buf[:n], l.offset)
		if len(names) > 0 {
			return names, nil
		}
	}
	return nil, nil
}

// resume goes on reading by a new descriptor of the directory.
func (l *listing) resume(fd int) error {
	_, err := unix.Seek(fd, l.offset, unix.SEEK_SET)
	return err
}

// parseDirents returns the names in what the kernel wrote (struct linux_dirent64), but
// "." and "..", and the position after the last.
func parseDirents(buf []byte, offset int64) ([]string, int64) {
	var names []string
	for len(buf) > 19 {
		length := int(binary.NativeEndian.Uint16(buf[16:]))
		if length < 20 || length > len(buf) {
			break
		}
		offset = int64(binary.NativeEndian.Uint64(buf[8:]))
		name := buf[19:length]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if s := string(name); s != "." && s != ".." {
			names = append(names, s)
		}
		buf = buf[length:]
	}
	return names, offset
}
