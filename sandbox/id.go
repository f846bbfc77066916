// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"crypto/rand"

	"sandpit.dev/fault"
)

// ID names a sandbox for ever: 16 lower-case letters and digits, the first a
// letter, never a dash. It is safe as a DNS label, so that a preview's host
// name {port}-{id} parses, and as a file name.
type ID string

const (
	idLen      = 16
	idLetters  = "abcdefghijklmnopqrstuvwxyz"
	idAlphabet = idLetters + "0123456789"
)

// NewID makes an id out of 80 bits of randomness.
func NewID() ID { return ID(randomName()) }

// NewProcessID makes the id of a process, of the same form as an [ID].
func NewProcessID() string { return randomName() }

func randomName() string {
	var b [idLen]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return nameOf(b)
}

// nameOf makes a name of bytes.
func nameOf(b [idLen]byte) string {
	b[0] = idLetters[int(b[0])%len(idLetters)]
	for i := 1; i < idLen; i++ {
		b[i] = idAlphabet[int(b[i])%len(idAlphabet)]
	}
	return string(b[:])
}

// ValidID reports whether s has the form of an [ID], or of a process's id.
func ValidID(s string) bool {
	if len(s) != idLen || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// MaxKey is the longest key, in characters.
const MaxKey = 255

// CheckKey checks a caller's own name for a sandbox: 1 to [MaxKey] printable
// characters without a slash, and not of the form of an id, since a key is
// accepted wherever an id is. The error is Invalid and about field.
func CheckKey(field, key string) error {
	if key == "" {
		return fault.InvalidField(field, "is empty; a key has 1 to %d characters", MaxKey)
	}
	n := 0
	for _, r := range key {
		n++
		if n > MaxKey {
			return fault.InvalidField(field, "is longer than %d characters (it starts with %q)", MaxKey, Clip(key, 40))
		}
		if r == '/' || !printable(r) {
			return fault.InvalidField(field, "%q holds %q; a key has printable characters without a slash", Clip(key, 80), r)
		}
	}
	if key == "." || key == ".." {
		return fault.InvalidField(field, "%q would get lost in an address's path; choose another key", key)
	}
	if ValidID(key) {
		return fault.InvalidField(field, "%q has the form of a sandbox id; choose a key that does not (add a dash, for example)", key)
	}
	return nil
}
