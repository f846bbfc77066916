// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package handshake

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// Key is what a server and one agent share, and nobody else knows.
type Key [32]byte

// NewKey makes one.
func NewKey() *Key {
	k := new(Key)
	_, _ = rand.Read(k[:]) // which never fails
	return k
}

// MarshalText writes the key in base64.
func (k *Key) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, k[:]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (k *Key) UnmarshalText(b []byte) error {
	got, err := base64.StdEncoding.DecodeString(string(b))
	if err != nil {
		return errors.New("the key is not base64") // and what it is, is told nobody
	}
	if len(got) != len(k) {
		return fmt.Errorf("the key has %d bytes, not %d", len(got), len(k))
	}
	copy(k[:], got)
	return nil
}

// String keeps the key out of logs.
func (*Key) String() string { return "(a key)" }

// GoString does as well.
func (*Key) GoString() string { return "(a key)" }

// What keys are derived for. None is the beginning of another.
const (
	byServer = "sandpit handshake 1: proof of the server;"
	byAgent  = "sandpit handshake 1: proof of the agent;"
	toServer = "sandpit handshake 1: records to the server;"
	toAgent  = "sandpit handshake 1: records to the agent;"
)

// derive is HMAC-SHA-256 of a purpose and of what both sides have sent.
func (k *Key) derive(purpose string, sent []byte) []byte {
	h := hmac.New(sha256.New, k[:])
	h.Write([]byte(purpose))
	h.Write(sent)
	return h.Sum(nil)
}
