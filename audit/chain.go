// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/sha256"
	"encoding/hex"

	"sandpit.dev/fault"
)

// Hash is that of a row; the zero Hash is what the first row of a chain comes after.
type Hash [sha256.Size]byte

const rowPrefix = "sandpit audit row 1\n"

// Next returns the hash of the row with a body that comes after the row of h.
func (h Hash) Next(body []byte) (next Hash) {
	d := sha256.New()
	d.Write([]byte(rowPrefix))
	d.Write(h[:])
	d.Write(body)
	d.Sum(next[:0])
	return next
}

// String returns h in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads what [Hash.String] returns, and nothing else.
func ParseHash(s string) (h Hash, err error) {
	if len(s) == hex.EncodedLen(len(h)) {
		if _, err := hex.Decode(h[:], []byte(s)); err == nil && h.String() == s {
			return h, nil
		}
	}
	return Hash{}, fault.New(fault.Malformed, "%.80q is not a hash: 64 hexadecimal digits in lower case", s)
}

// HashOf returns the hash whose bytes b are.
func HashOf(b []byte) (h Hash, ok bool) {
	if len(b) != len(h) {
		return h, false
	}
	copy(h[:], b)
	return h, true
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }
