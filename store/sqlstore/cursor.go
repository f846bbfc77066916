// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// A cursor is a place in a listing: what it lists, of which project, in which
// order, and the last row given. It comes back from callers, so it carries a
// checksum: against nonsense and mix-ups, not against forgery, since a forged one
// reaches nothing that its query may not see anyway.
//
// In bytes: the kind, the order, a number, a name, the checksum of these and of the project.
type cursor struct {
	kind    byte // cursorSandboxes, cursorEvents, cursorSnapshots
	project string
	oldest  bool
	number  int64  // microseconds of CreatedAt, or Seq
	name    string // the sandbox's or the snapshot's id
}

const (
	cursorSandboxes byte = 's'
	cursorEvents    byte = 'e'
	cursorSnapshots byte = 'd' // of a disk
	cursorRuns      byte = 'r'
	cursorAudit     byte = 'a'
	maxCursor            = 128 // characters; ours are shorter
)

func (c cursor) String() string {
	b := make([]byte, 0, 40)
	b = append(b, c.kind, orderByte(c.oldest))
	b = binary.BigEndian.AppendUint64(b, uint64(c.number))
	b = append(b, c.name...)
	b = binary.BigEndian.AppendUint32(b, checksum(b, c.project))
	return base64.RawURLEncoding.EncodeToString(b)
}

func checksum(b []byte, project string) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b), crc32.IEEETable, []byte(project))
}

func orderByte(oldest bool) byte {
	if oldest {
		return 'o'
	}
	return 'n'
}

// parseCursor reads a cursor that was made for the same kind, project and order.
func parseCursor(text string, kind byte, project string, oldest bool) (cursor, error) {
	if len(text) <= maxCursor {
		b, err := base64.RawURLEncoding.Strict().DecodeString(text)
		// The decoder passes over line breaks; what we made has none.
		if n := len(b) - 4; err == nil && n >= 10 && !strings.ContainsAny(text, "\r\n") && b[0] == kind && b[1] == orderByte(oldest) &&
			binary.BigEndian.Uint32(b[n:]) == checksum(b[:n], project) {
			return cursor{kind: kind, project: project, oldest: oldest, number: int64(binary.BigEndian.Uint64(b[2:])), name: string(b[10:n])}, nil
		}
	}
	return cursor{}, fault.InvalidField("cursor", "%q was not given by this listing in this order", sandbox.Clip(text, 40)).
		WithRemedy("begin again without a cursor, and pass each answer's cursor as it is, with the same query")
}
