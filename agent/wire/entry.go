// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math"
	"time"
)

// A list of files may have a hundred thousand entries, and JSON costs more than looking at the
// files does. So a caller that asks for it by Request.Compact gets lists as Data frames, each of whole
// entries, one behind the other:
//
//	[1 byte type][uvarint mode][uvarint size][varint seconds][uvarint nanoseconds][uvarint uid][uvarint gid]
//	[name][path][owner][group][target][1 byte target's type]
//
// where a text is its length as a uvarint, and its bytes. Attributes are not in lists.

// AppendEntry appends an entry of a list.
func AppendEntry(dst []byte, fi *FileInfo) []byte {
	dst = append(dst, letter(fi.Type))
	dst = binary.AppendUvarint(dst, uint64(fi.Mode))
	dst = binary.AppendUvarint(dst, uint64(max(0, fi.Size)))
	dst = binary.AppendVarint(dst, fi.Mod.Unix())
	dst = binary.AppendUvarint(dst, uint64(fi.Mod.Nanosecond()))
	dst = binary.AppendUvarint(dst, uint64(fi.UID))
	dst = binary.AppendUvarint(dst, uint64(fi.GID))
	for _, text := range [...]string{fi.Name, fi.Path, fi.Owner, fi.Group, fi.Target} {
		dst = binary.AppendUvarint(dst, uint64(len(text)))
		dst = append(dst, text...)
	}
	return append(dst, letter(fi.TargetType))
}

// MaxEntry is more than the bytes of any entry.
const MaxEntry = 1 + 7*binary.MaxVarintLen64 + 5*binary.MaxVarintLen64 + 3*MaxName + 6*MaxPath + 2*MaxAccountName + 1

// letter is the byte of a type; 0 stands for none.
func letter(kind string) byte {
	switch kind {
	case File:
		return 'f'
	case Dir:
		return 'd'
	case Symlink:
		return 'l'
	case Other:
		return 'o'
	}
	return 0
}

func kindOf(letter byte) (string, bool) {
	switch letter {
	case 'f':
		return File, true
	case 'd':
		return Dir, true
	case 'l':
		return Symlink, true
	case 'o':
		return Other, true
	}
	return "", letter == 0
}

// Entries reads the entries of one Data frame. Each is checked for its form, not for its sense.
type Entries struct {
	rest []byte
	bad  bool
	// owner and group of the entry before: most entries have the same.
	owner, group string
}

// Reset begins with another frame.
func (e *Entries) Reset(p []byte) { e.rest, e.bad = p, false }

// Next reads an entry. It reports false at the frame's end, and where it is no entry: see Err.
func (e *Entries) Next(fi *FileInfo) bool {
	if len(e.rest) == 0 || e.bad {
		return false
	}
	var ok bool
	*fi = FileInfo{}
	if fi.Type, ok = kindOf(e.rest[0]); !ok || fi.Type == "" {
		e.bad = true
		return false
	}
	e.rest = e.rest[1:]
	fi.Mode = e.small()
	fi.Size = int64(min(e.uvarint(), math.MaxInt64))
	sec := e.varint()
	nsec := e.uvarint()
	fi.UID, fi.GID = e.small(), e.small()
	fi.Name, fi.Path = string(e.text()), string(e.text())
	fi.Owner, fi.Group = e.same(&e.owner), e.same(&e.group)
	fi.Target = string(e.text())
	if e.bad || len(e.rest) == 0 || nsec >= 1e9 {
		e.bad = true
		return false
	}
	fi.Mod = time.Unix(sec, int64(nsec)).UTC()
	if fi.TargetType, ok = kindOf(e.rest[0]); !ok {
		e.bad = true
		return false
	}
	e.rest = e.rest[1:]
	return true
}

// Err tells of a frame that is no list.
func (e *Entries) Err() error {
	if e.bad {
		return &FormatError{"an entry of a list breaks off, or is none"}
	}
	return nil
}

func (e *Entries) uvarint() uint64 {
	v, n := binary.Uvarint(e.rest)
	if n <= 0 {
		e.bad, e.rest = true, nil
		return 0
	}
	e.rest = e.rest[n:]
	return v
}

func (e *Entries) varint() int64 {
	v, n := binary.Varint(e.rest)
	if n <= 0 {
		e.bad, e.rest = true, nil
		return 0
	}
	e.rest = e.rest[n:]
	return v
}

func (e *Entries) small() uint32 {
	v := e.uvarint()
	if v > math.MaxUint32 {
		e.bad = true
	}
	return uint32(v)
}

func (e *Entries) text() []byte {
	n := e.uvarint()
	if n > uint64(len(e.rest)) {
		e.bad, e.rest = true, nil
		return nil
	}
	b := e.rest[:n]
	e.rest = e.rest[n:]
	return b
}

// same is text that is the same string where it is as before.
func (e *Entries) same(before *string) string {
	if b := e.text(); string(b) != *before {
		*before = string(b)
	}
	return *before
}
