// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// Validity is how long a key is valid.
const Validity = time.Hour

// Key is what one client sends files with, into one project.
type Key struct {
	ID, Secret, Token string
}

// Keys issues keys and checks them. A key is stateless: all about it is in its token, signed with a secret of this process.
type Keys struct {
	secret [32]byte
	now    func() time.Time
}

// NewKeys returns keys that end with this process. now is nil for time.Now.
func NewKeys(now func() time.Time) *Keys {
	if now == nil {
		now = time.Now
	}
	k := &Keys{now: now}
	_, _ = rand.Read(k.secret[:]) // which does not fail
	return k
}

// Bucket is where clients are told to put files: the first part of each path.
func (k *Keys) Bucket() string { return bucket }

// A token is the end of its validity, random bytes, the length of the project's name, that, and who asked for it; and their code.
const (
	timeBytes   = 8
	randomBytes = 16
	lengthBytes = 2
	headBytes   = timeBytes + randomBytes + lengthBytes
	codeBytes   = sha256.Size
	mostToken   = 2048 // in base64
)

// Issue returns a new key to the caller's project.
func (k *Keys) Issue(c access.Caller) Key {
	said := binary.BigEndian.AppendUint64(nil, uint64(k.now().Add(Validity).Unix()))
	said = append(said, make([]byte, randomBytes)...)
	_, _ = rand.Read(said[timeBytes:])
	said = binary.BigEndian.AppendUint16(said, uint16(len(c.Project)))
	said = append(said, c.Project...)
	return k.of(append(said, c.Actor...))
}

// of returns the key of what a token says.
func (k *Keys) of(said []byte) Key {
	return Key{
		ID:     "SP" + hex.EncodeToString(k.code("id", said)[:9]),
		Secret: base64.RawStdEncoding.EncodeToString(k.code("secret", said)),
		Token:  base64.RawURLEncoding.EncodeToString(slices.Concat(said, k.code("token", said))),
	}
}

func (k *Keys) code(of string, said []byte) []byte {
	h := hmac.New(sha256.New, k.secret[:])
	h.Write([]byte(of + "\x00"))
	h.Write(said)
	return h.Sum(nil)
}

// find returns the key of a token, its project, and who asked for it.
func (k *Keys) find(token string) (key Key, project, actor string, err error) {
	wrong := fault.New(fault.Unauthenticated, "the session token is not one of this server's, or of an earlier process of it").WithRemedy("%s", askAgain)
	if len(token) > mostToken {
		return Key{}, "", "", wrong
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(text) <= headBytes+codeBytes {
		return Key{}, "", "", wrong
	}
	said := text[: len(text)-codeBytes : len(text)-codeBytes]
	if !hmac.Equal(text[len(said):], k.code("token", said)) {
		return Key{}, "", "", wrong
	}
	if until := time.Unix(int64(binary.BigEndian.Uint64(said)), 0); !k.now().Before(until) {
		return Key{}, "", "", fault.New(fault.Unauthenticated, "the key expired at %s", until.UTC().Format(time.RFC3339)).WithRemedy("%s", askAgain)
	}
	rest := said[headBytes:]
	n := min(int(binary.BigEndian.Uint16(said[timeBytes+randomBytes:])), len(rest))
	return k.of(said), string(rest[:n]), string(rest[n:]), nil
}

const askAgain = "ask for a key again: GET /object-storage/push-access"
