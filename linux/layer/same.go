// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// compareSize is how much of each of two files is compared at once.
const compareSize = 128 << 10

// same reports whether what two sides have under a name, which both have, is the same.
func (d *differ) same(name string, l *level, from, to *entry) (bool, error) {
	if !from.inLayer && !to.inLayer {
		return true, nil
	}
	a, b := &from.stat, &to.stat
	if from.inLayer && to.inLayer && a.Ino == b.Ino && a.Ctim == b.Ctim && a.Ctim.Sec < d.since-1 {
		return true, nil
	}
	if a.Mode != b.Mode || a.Uid != b.Uid || a.Gid != b.Gid {
		return false, nil
	}
	kind := a.Mode & unix.S_IFMT
	if (kind == unix.S_IFREG || kind == unix.S_IFLNK) && (a.Size != b.Size || a.Mtim != b.Mtim) {
		return false, nil
	}
	nodes := [2]node{namedNode(d.dirOf(0, from), name), namedNode(d.dirOf(1, to), name)}
	if same, err := sameAttrs(nodes[0], nodes[1]); !same || err != nil {
		return false, vanished(err)
	}
	switch kind {
	case unix.S_IFREG:
		same, err := d.sameContent(nodes, from, to)
		return same, vanished(err)
	case unix.S_IFLNK:
		was, err := readLink(nodes[0].dir, name)
		if err != nil {
			return false, vanished(err)
		}
		is, err := readLink(nodes[1].dir, name)
		return was == is, vanished(err)
	}
	return true, nil
}

// vanished makes of an error about a file that is no longer there, or too much for
// the kernel to tell, that it is not the same.
func vanished(err error) error {
	switch err {
	case unix.ENOENT, unix.ELOOP, unix.E2BIG, unix.ENODATA, errMoved:
		return nil
	}
	return err
}

// sameAttrs compares extended attributes, but those that the overlay mount keeps.
func sameAttrs(a, b node) (bool, error) {
	was, err := a.visibleAttrs()
	if err != nil {
		return false, err
	}
	is, err := b.visibleAttrs()
	if err != nil || !slices.Equal(was, is) {
		return false, err
	}
	for _, name := range is {
		x, err := a.value(name)
		if err != nil {
			return false, err
		}
		y, err := b.value(name)
		if err != nil || !bytes.Equal(x, y) {
			return false, err
		}
	}
	return true, nil
}

// visibleAttrs returns the names of the attributes that are seen inside.
func (n node) visibleAttrs() ([]string, error) {
	names, err := n.attrs()
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, overlayAttrs) }), err
}

// sameContent compares two regular files of one size.
func (d *differ) sameContent(nodes [2]node, from, to *entry) (bool, error) {
	var fds [2]int
	for i, e := range []*entry{from, to} {
		fd, err := openFile(nodes[i].dir, nodes[i].name, &e.stat)
		if err != nil {
			return false, err
		}
		defer unix.Close(fd)
		fds[i] = fd
		if d.buf[i] == nil {
			d.buf[i] = make([]byte, compareSize)
		}
	}
	for at, size := int64(0), to.stat.Size; at < size; {
		if err := d.ctx.Err(); err != nil {
			return false, err
		}
		// What is a hole in both need not be read, and there is no bound on it.
		next := size
		for _, fd := range fds {
			data, err := unix.Seek(fd, at, unix.SEEK_DATA)
			if err == nil {
				next = min(next, data)
			} else if err != unix.ENXIO {
				return false, err
			}
		}
		if at = next; at >= size {
			break
		}
		var n [2]int
		for i, fd := range fds {
			var err error
			if n[i], err = unix.Pread(fd, d.buf[i], at); err != nil {
				return false, err
			}
		}
		if n[0] != n[1] || !bytes.Equal(d.buf[0][:n[0]], d.buf[1][:n[1]]) {
			return false, nil
		}
		if n[0] == 0 {
			break
		}
		at += int64(n[0])
	}
	return true, nil
}
