// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bytes"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// overlayAttrs begins the names of the extended attributes that an overlay mount
// keeps its own state in. Nothing inside a sandbox can set them.
const overlayAttrs = "trusted.overlay."

// opaqueAttr is set to "y" on a directory that hides the one below it.
const opaqueAttr = overlayAttrs + "opaque"

// node names a file for calls that take attributes: an open one, or else a name in an
// open directory, which is not followed where it is a link.
type node struct {
	fd   int
	dir  int
	name string
}

func openNode(fd int) node { return node{fd: fd} }

func namedNode(dir int, name string) node { return node{fd: -1, dir: dir, name: name} }

// path leads to a named node: its middle is an open directory, and the calls that it
// is for do not follow its end.
func (n node) path() string { return fmt.Sprintf("/proc/self/fd/%d/%s", n.dir, n.name) }

func (n node) list(buf []byte) (int, error) {
	if n.fd >= 0 {
		return unix.Flistxattr(n.fd, buf)
	}
	return unix.Llistxattr(n.path(), buf)
}

func (n node) get(attr string, buf []byte) (int, error) {
	if n.fd >= 0 {
		return unix.Fgetxattr(n.fd, attr, buf)
	}
	return unix.Lgetxattr(n.path(), attr, buf)
}

func (n node) set(attr string, value []byte) error {
	if n.fd >= 0 {
		return unix.Fsetxattr(n.fd, attr, value, 0)
	}
	return unix.Lsetxattr(n.path(), attr, value, 0)
}

// attrs returns the names of all extended attributes, sorted. A file that has more than
// 64 KiB of names is refused by the kernel (E2BIG).
func (n node) attrs() ([]string, error) {
	var small [256]byte
	size, err := n.list(small[:])
	buf := small[:]
	for err == unix.ERANGE {
		if size, err = n.list(nil); err != nil {
			break
		}
		buf = make([]byte, size+256)
		size, err = n.list(buf)
	}
	if err == unix.EOPNOTSUPP {
		return nil, nil
	}
	if err != nil || size == 0 {
		return nil, err
	}
	var names []string
	for name := range bytes.SplitSeq(buf[:size], []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// value reads one attribute.
func (n node) value(attr string) ([]byte, error) {
	var small [256]byte
	size, err := n.get(attr, small[:])
	if err == nil {
		return bytes.Clone(small[:size]), nil
	}
	for err == unix.ERANGE {
		if size, err = n.get(attr, nil); err != nil {
			break
		}
		buf := make([]byte, size+256)
		if size, err = n.get(attr, buf); err == nil {
			return buf[:size], nil
		}
	}
	return nil, err
}

// copyAttrs gives a file the attributes of another.
func copyAttrs(from, to node) error {
	names, err := from.attrs()
	if err != nil {
		return err
	}
	for _, name := range names {
		value, err := from.value(name)
		if err == unix.ENODATA {
			continue
		}
		if err != nil {
			return err
		}
		if err := to.set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// isWhiteout reports whether a file of a layer means that there is none.
func isWhiteout(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// isOpaque reports whether a directory of a layer hides the one below it.
func isOpaque(fd int) bool {
	var buf [2]byte
	n, err := unix.Fgetxattr(fd, opaqueAttr, buf[:])
	return err == nil && n == 1 && buf[0] == 'y'
}
