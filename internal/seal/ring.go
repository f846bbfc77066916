// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	version = 1
	idSize  = 8
	// KeySize is the size of a key in bytes.
	KeySize = 32
	// MaxKeys is how many keys a ring has at most.
	MaxKeys = 64
	// Overhead is how many bytes a sealed value is longer than the value.
	Overhead = 1 + idSize + nonceSize + tagSize

	nonceSize = 12
	tagSize   = 16
)

// Ring is one key that seals, and others that only open. It is safe for concurrent use.
type Ring struct {
	keys []key
}

type key struct {
	id   [idSize]byte
	aead cipher.AEAD // with the nonce before the sealed bytes
	root []byte
}

// New makes a ring of keys of KeySize random bytes each. The first seals.
func New(keys ...[]byte) (*Ring, error) {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("there are %d keys; want 1 to %d", len(keys), MaxKeys)
	}
	r := &Ring{}
	for i, k := range keys {
		made, err := newKey(k)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if r.find(made.id) != nil {
			return nil, fmt.Errorf("key %d is there twice", i+1)
		}
		r.keys = append(r.keys, *made)
	}
	return r, nil
}

func newKey(root []byte) (*key, error) {
	switch {
	case len(root) != KeySize:
		return nil, fmt.Errorf("it has %d bytes; want %d", len(root), KeySize)
	case bytes.Count(root, root[:1]) == KeySize:
		return nil, fmt.Errorf("all its bytes are the same; want %d random ones", KeySize)
	}
	k := &key{root: bytes.Clone(root)}
	copy(k.id[:], k.derive("id", idSize))
	block, err := aes.NewCipher(k.derive("seal", 32))
	if err != nil {
		return nil, err
	}
	k.aead, err = cipher.NewGCMWithRandomNonce(block)
	return k, err
}

// derive makes a key of this one. The labels of the package itself begin with a letter,
// those of callers with a slash.
func (k *key) derive(label string, n int) []byte {
	out, err := hkdf.Key(sha256.New, k.root, nil, "sandpit "+label, n)
	if err != nil {
		panic(err) // n is more than 255 hashes: no caller means that
	}
	return out
}

func (r *Ring) find(id [idSize]byte) *key {
	for i := range r.keys {
		if r.keys[i].id == id {
			return &r.keys[i]
		}
	}
	return nil
}

// Parse reads keys, one a line, each KeySize bytes in base64 or hex. Empty lines and those
// that begin with # are passed over. The error names the line and never what is in it.
func Parse(text string) (*Ring, error) {
	var keys [][]byte
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, ok := decode(line)
		if !ok {
			return nil, fmt.Errorf("line %d is not a valid key: want %d random bytes in base64 or hex", n+1, KeySize)
		}
		keys = append(keys, k)
	}
	return New(keys...)
}

func decode(s string) ([]byte, bool) {
	if b, err := hex.DecodeString(s); err == nil && len(b) == KeySize {
		return b, true
	}
	s = strings.TrimRight(s, "=")
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if b, err := enc.DecodeString(s); err == nil && len(b) == KeySize {
			return b, true
		}
	}
	return nil, false
}

// Generate makes a key and returns it in the form that Parse reads.
func Generate() string {
	k := make([]byte, KeySize)
	_, _ = rand.Read(k) // it never fails
	return base64.StdEncoding.EncodeToString(k)
}

// KeyID identifies the key that seals, without revealing it.
func (r *Ring) KeyID() string { return hex.EncodeToString(r.keys[0].id[:]) }

// Seal seals a value for what is named by bind: it opens only for the same parts in the
// same order.
func (r *Ring) Seal(value []byte, bind ...string) []byte {
	k := &r.keys[0]
	out := make([]byte, 0, len(value)+Overhead)
	out = append(append(out, version), k.id[:]...)
	return k.aead.Seal(out, nil, value, bound(out, bind))
}

// Open returns the value that was sealed for what is named by bind. The error is a
// *KeyGoneError if the ring lacks its key, and else ErrNotSealed.
func (r *Ring) Open(sealed []byte, bind ...string) ([]byte, error) {
	id, err := idOf(sealed)
	if err != nil {
		return nil, err
	}
	k := r.find(id)
	if k == nil {
		return nil, &KeyGoneError{ID: hex.EncodeToString(id[:])}
	}
	head := sealed[:1+idSize]
	value, err := k.aead.Open(nil, nil, sealed[1+idSize:], bound(head, bind))
	if err != nil {
		return nil, ErrNotSealed
	}
	return value, nil
}

// Current reports whether the value was sealed by the key that seals now.
func (r *Ring) Current(sealed []byte) bool {
	id, err := idOf(sealed)
	return err == nil && id == r.keys[0].id
}

// Derive returns n bytes, at most 8160, that are a secret of their own for each label and
// always the same for the first key of the ring.
func (r *Ring) Derive(label string, n int) []byte { return r.keys[0].derive("/"+label, n) }

func idOf(sealed []byte) (id [idSize]byte, err error) {
	if len(sealed) < Overhead || sealed[0] != version {
		return id, ErrNotSealed
	}
	copy(id[:], sealed[1:])
	return id, nil
}

// bound is the additional data of a value: its head, and the parts that it is bound to, each
// behind its length so that none can take over bytes of another.
func bound(head []byte, parts []string) []byte {
	out := bytes.Clone(head)
	for _, p := range parts {
		out = append(out, byte(len(p)>>24), byte(len(p)>>16), byte(len(p)>>8), byte(len(p)))
		out = append(out, p...)
	}
	return out
}
