// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"
	"time"
)

// logPrefix is what stands before the content in a log frame's payload.
const logPrefix = 4 + 8 + 8

// LogHeaderLen is the length of what stands before the content of a log frame,
// the frame's own header included.
const LogHeaderLen = HeaderLen + logPrefix

// LogFrame is one frame of a process's log.
type LogFrame struct {
	Type Type
	Seq  int64
	At   time.Time
	Data []byte // part of the payload that it was read from
}

// PutLogHeader writes the header of a log frame to the first [LogHeaderLen]
// bytes of b. The content already stands behind them, up to b's end: so a
// frame is read from a pipe and written to its file in one piece.
func PutLogHeader(b []byte, t Type, seq int64, at time.Time) {
	PutHeader(b, t, len(b)-HeaderLen)
	binary.BigEndian.PutUint64(b[8:], uint64(seq))
	binary.BigEndian.PutUint64(b[16:], uint64(at.UnixNano()))
	binary.BigEndian.PutUint32(b[4:], logSum(b[:HeaderLen], b[8:]))
}

// AppendLog appends a log frame with the content data to dst.
func AppendLog(dst []byte, t Type, seq int64, at time.Time, data []byte) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, LogHeaderLen)...)
	dst = append(dst, data...)
	PutLogHeader(dst[start:], t, seq, at)
	return dst
}

// ParseLog reads the payload of a log frame and checks its sum.
func ParseLog(t Type, payload []byte) (LogFrame, error) {
	if t < LogStart || t > LogFloor {
		return LogFrame{}, &FormatError{"a frame of type " + strconv.Itoa(int(t)) + " is not of a log"}
	}
	if len(payload) < logPrefix {
		return LogFrame{}, &FormatError{"a log frame of " + strconv.Itoa(len(payload)) + " bytes is too short"}
	}
	var h [HeaderLen]byte
	PutHeader(h[:], t, len(payload))
	if binary.BigEndian.Uint32(payload) != logSum(h[:], payload[4:]) {
		return LogFrame{}, &FormatError{"a log frame's sum is wrong"}
	}
	seq := int64(binary.BigEndian.Uint64(payload[4:]))
	if seq < 0 {
		return LogFrame{}, &FormatError{"a log frame's number is negative"}
	}
	return LogFrame{
		Type: t, Seq: seq, At: time.Unix(0, int64(binary.BigEndian.Uint64(payload[12:]))), Data: payload[logPrefix:],
	}, nil
}

// logSum is computed with the processor's own instruction; its table is made at
// first use, not at the agent's start.
func logSum(header, rest []byte) uint32 {
	table := crc32.IEEETable
	return crc32.Update(crc32.Checksum(header, table), table, rest)
}
