// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package chunks

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"sandpit.dev/fault"
)

// Sum is the SHA-256 of a chunk's content.
type Sum [sha256.Size]byte

func (s Sum) name() string { return hex.EncodeToString(s[:]) }

// Chunk is one of a stream's.
type Chunk struct {
	Sum    Sum
	Size   uint32 // of its content
	Stored uint32 // of it in the store
}

// Index is a stream, as its chunks in their order.
type Index []Chunk

// StoredBytes is what the chunks take in the store, whoever else has them.
func (x Index) StoredBytes() (n int64) {
	seen := make(map[Sum]bool, len(x))
	for _, c := range x {
		if !seen[c.Sum] {
			n += int64(c.Stored)
			seen[c.Sum] = true
		}
	}
	return n
}

// magic is what the file of an index begins with. It ends with the SHA-256 of what is before.
const magic = "sandpit chunks 1\n"

// chunkLen is the length of one in a file.
const chunkLen = sha256.Size + 4 + 4

// Append appends the index as it is in a file.
func (x Index) Append(b []byte) []byte {
	at := len(b)
	b = append(b, magic...)
	for _, c := range x {
		b = append(b, c.Sum[:]...)
		b = binary.BigEndian.AppendUint32(b, c.Size)
		b = binary.BigEndian.AppendUint32(b, c.Stored)
	}
	sum := sha256.Sum256(b[at:])
	return append(b, sum[:]...)
}

// IsIndex reports whether a file that begins so is an index.
func IsIndex(b []byte) bool { return bytes.HasPrefix(b, []byte(magic)) }

// Parse reads what Append wrote.
func Parse(b []byte) (Index, error) {
	n := len(b) - len(magic) - sha256.Size
	if !IsIndex(b) || n < 0 || n%chunkLen != 0 {
		return nil, fault.New(fault.Internal, "an index of chunks is not whole: it has %d bytes", len(b))
	}
	body, end := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], end) {
		return nil, fault.New(fault.Internal, "an index of chunks is damaged: its checksum is another")
	}
	x := make(Index, 0, n/chunkLen)
	for body = body[len(magic):]; len(body) > 0; body = body[chunkLen:] {
		c := Chunk{Sum: Sum(body[:sha256.Size]), Size: binary.BigEndian.Uint32(body[sha256.Size:]), Stored: binary.BigEndian.Uint32(body[sha256.Size+4:])}
		x = append(x, c)
	}
	return x, nil
}
