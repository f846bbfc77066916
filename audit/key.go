// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
)

// Key signs checkpoints and exports.
type Key struct{ private ed25519.PrivateKey }

// PublicKey is what signatures of a [Key] are checked by.
type PublicKey struct{ public ed25519.PublicKey }

const keyPrefix = "ed25519:"

// NewKey returns a new key.
func NewKey() Key {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // the system's source of random bytes does not fail
	}
	return Key{private}
}

// ReadOrMakeKey reads the key in a file, or makes it with a new one, for its owner alone. The file has the seed of an
// Ed25519 key (RFC 8032) in base64.
func ReadOrMakeKey(path string) (Key, error) {
	k, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	seed := base64.StdEncoding.EncodeToString(NewKey().private.Seed())
	if err := atomicfile.Write(path, []byte(seed+"\n"), 0o600); err != nil {
		return Key{}, err
	}
	return readKey(path)
}

func readKey(path string) (Key, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Key{}, err
	}
	seed, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(string(b), "\n"))
	if err != nil || len(seed) != ed25519.SeedSize {
		return Key{}, fmt.Errorf("%s is not the seed of an Ed25519 key: %d bytes in base64", path, ed25519.SeedSize)
	}
	return Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// Public returns the key that others check by.
func (k Key) Public() PublicKey { return PublicKey{k.private.Public().(ed25519.PublicKey)} }

// Sign signs a message.
func (k Key) Sign(message []byte) []byte { return ed25519.Sign(k.private, message) }

// Verify reports whether a signature of a message is by the key.
func (p PublicKey) Verify(message, signature []byte) bool {
	return len(p.public) == ed25519.PublicKeySize && ed25519.Verify(p.public, message, signature)
}

// String returns the key as exports and the command line have it: "ed25519:" and base64.
func (p PublicKey) String() string { return keyPrefix + base64.StdEncoding.EncodeToString(p.public) }

// Equal reports whether two keys are the same.
func (p PublicKey) Equal(q PublicKey) bool { return p.public.Equal(q.public) }

// ParsePublicKey reads what [PublicKey.String] returns.
func ParsePublicKey(s string) (PublicKey, error) {
	text, ok := strings.CutPrefix(s, keyPrefix)
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(b) != ed25519.PublicKeySize || strings.ContainsAny(s, "\r\n") {
		return PublicKey{}, fault.New(fault.Malformed, "%.80q is not a key of an audit log: ed25519: and 32 bytes in base64", s)
	}
	return PublicKey{b}, nil
}
