// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"crypto/rand"
	"encoding/hex"
)

const maxRequestID = 128

// requestID returns the id that a client or a proxy sent if it is fit for a log and a header, and
// else makes one.
func requestID(given string) string {
	if saneID(given) {
		return given
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}

func saneID(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
