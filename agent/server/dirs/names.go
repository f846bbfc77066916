// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sort"

	"golang.org/x/sys/unix"
)

// Names are the entries of a directory, kept in one piece of memory.
type Names struct {
	text []byte
	at   []entry
}

type entry struct {
	from uint32
	size uint8
	kind uint8
}

// maxText bounds the bytes of the names of one directory.
const maxText = 16 << 20

// ErrMany is a directory with more entries than are read.
var ErrMany = errors.New("the directory has too many entries")

// Read reads the names of a directory from its beginning on, at most so many; more are [ErrMany].
func Read(fd, most int) (*Names, error) {
	n := new(Names)
	buf := make([]byte, 8<<10)
	for {
		got, err := unix.Getdents(fd, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, err
		case got == 0:
			return n, nil
		}
		if err := n.add(buf[:got], most); err != nil {
			return nil, err
		}
		if len(buf) < 64<<10 {
			buf = make([]byte, 64<<10) // it is not a small one
		}
	}
}

// headLen is what stands before the name in a linux_dirent64.
const headLen = 19

func (n *Names) add(b []byte, most int) error {
	for len(b) > headLen {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size <= headLen || size > len(b) {
			return unix.EIO
		}
		name, kind := b[headLen:size], b[18]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		b = b[size:]
		if string(name) == "." || string(name) == ".." || len(name) == 0 {
			continue
		}
		if len(name) > 255 {
			return unix.ENAMETOOLONG
		}
		if len(n.at) >= most || len(n.text)+len(name) > maxText {
			return ErrMany
		}
		n.at = append(n.at, entry{uint32(len(n.text)), uint8(len(name)), kind})
		n.text = append(n.text, name...)
	}
	return nil
}

// Len is how many there are.
func (n *Names) Len() int { return len(n.at) }

// Name returns the name with a number, as bytes that are not to be changed.
func (n *Names) Name(i int) []byte {
	e := n.at[i]
	return n.text[e.from : e.from+uint32(e.size)]
}

// Dir reports whether the entry may be a directory: whether it is says who opens it.
func (n *Names) Dir(i int) bool {
	return n.at[i].kind == unix.DT_DIR || n.at[i].kind == unix.DT_UNKNOWN
}

// Sort sorts by the bytes of the names.
func (n *Names) Sort() {
	sort.Slice(n.at, func(i, j int) bool { return bytes.Compare(n.Name(i), n.Name(j)) < 0 })
}

// IsDir reports whether the kernel says that the entry is a directory.
func (n *Names) IsDir(i int) bool { return n.at[i].kind == unix.DT_DIR }
