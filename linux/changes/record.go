// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// watched are the events that a window needs. MOVE_SELF carries no news: it
// ends the events of one rename, so that what stands between tells whether the
// rename replaced a file (see window.applyRename).
const watched = unix.FAN_CREATE | unix.FAN_DELETE | unix.FAN_RENAME | unix.FAN_MOVE_SELF |
	unix.FAN_MODIFY | unix.FAN_ATTRIB | unix.FAN_CLOSE_WRITE | unix.FAN_ONDIR

// maxRecord is over the longest event: a header, two directories with a name
// each, and a file.
const maxRecord = 4096

// fsid is a file system's id as statfs(2) returns it.
type fsid [8]byte

// record is one event. Its slices point into the read buffer and are valid
// only until the next read.
type record struct {
	mask uint64
	tid  int32
	fsid fsid
	// dir and name: where the event happened; for a rename, the old place.
	// Both are nil for an event on a file that came without a name.
	dir, name []byte
	// newDir and newName: a rename's new place.
	newDir, newName []byte
	// target is the handle of the file itself; nil where dir is meant (name ".").
	target []byte
}

// peek returns of the event that b begins with only its size, its file system, and whether
// it stands for events that were dropped. It returns false as [parse] does.
func peek(b []byte) (size int, id fsid, overflow, ok bool) {
	const header = unix.FAN_EVENT_METADATA_LEN
	if len(b) < header {
		return 0, id, false, false
	}
	size = int(binary.NativeEndian.Uint32(b))
	if size < header || size > len(b) || b[4] != unix.FANOTIFY_METADATA_VERSION {
		return 0, id, false, false
	}
	if size >= header+12 { // each record of information has the id after its own header
		copy(id[:], b[header+4:])
	}
	return size, id, binary.NativeEndian.Uint64(b[8:])&unix.FAN_Q_OVERFLOW != 0, true
}

// parse takes one event off b. It returns false where b holds no whole event of
// the version we know, which the kernel never sends.
func parse(b []byte) (r record, rest []byte, ok bool) {
	const header = unix.FAN_EVENT_METADATA_LEN
	if len(b) < header {
		return r, nil, false
	}
	n := int(binary.NativeEndian.Uint32(b))
	if n < header || n > len(b) || b[4] != unix.FANOTIFY_METADATA_VERSION {
		return r, nil, false
	}
	r.mask = binary.NativeEndian.Uint64(b[8:])
	r.tid = int32(binary.NativeEndian.Uint32(b[20:]))
	info := b[header:n]
	for len(info) >= 20 {
		size := int(binary.NativeEndian.Uint16(info[2:]))
		if size < 20 || size > len(info) {
			return r, nil, false
		}
		one := info[:size]
		info = info[size:]
		end := 20 + int(binary.NativeEndian.Uint32(one[12:]))
		if end > len(one) {
			return r, nil, false
		}
		// A handle's length, type and bytes together are its key.
		handle, name := one[12:end], one[end:]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		copy(r.fsid[:], one[4:12])
		switch one[0] {
		case unix.FAN_EVENT_INFO_TYPE_DFID_NAME, unix.FAN_EVENT_INFO_TYPE_OLD_DFID_NAME:
			r.dir, r.name = handle, name
		case unix.FAN_EVENT_INFO_TYPE_NEW_DFID_NAME:
			r.newDir, r.newName = handle, name
		case unix.FAN_EVENT_INFO_TYPE_DFID:
			r.dir, r.name = handle, []byte(".")
		case unix.FAN_EVENT_INFO_TYPE_FID:
			r.target = handle
		}
	}
	return r, b[n:], true
}

func (r *record) has(mask uint64) bool { return r.mask&mask != 0 }

// self tells an event on a directory itself, reported without its parent.
func (r *record) self() bool { return len(r.name) == 1 && r.name[0] == '.' }
