// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package handshake

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Where whoever carries the agent's configuration may read it, a key cannot be in it. Then each side makes
// a pair, and tells the other its public half: the server in the configuration, the agent by a way that nobody else
// writes to. The key is what both make of their own private half and the other's public one.

// Private is the half of a pair that its maker keeps.
type Private struct{ key *ecdh.PrivateKey }

// Public is the half of a pair that anybody may know.
type Public [32]byte

// NewPair makes a pair, of X25519.
func NewPair() (*Private, Public, error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, Public{}, err
	}
	return &Private{key}, Public(key.PublicKey().Bytes()), nil
}

// MarshalText writes it in base64.
func (p *Public) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, p[:]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (p *Public) UnmarshalText(b []byte) error {
	got, err := base64.StdEncoding.DecodeString(string(b))
	if err != nil {
		return fmt.Errorf("it is not base64: %w", err)
	}
	if len(got) != len(p) {
		return fmt.Errorf("it has %d bytes, not %d", len(got), len(p))
	}
	copy(p[:], got)
	return nil
}

// announces begins the line in which an agent tells the public half of its pair.
const announces = "sandpit-agent "

// Line returns the line in which an agent tells it, without the line's end.
func (p *Public) Line() string {
	return announces + base64.StdEncoding.EncodeToString(p[:])
}

// ParseLine reads what Line returned.
func ParseLine(line string) (p Public, err error) {
	text, found := strings.CutPrefix(line, announces)
	if !found {
		return p, errors.New("it does not tell a key")
	}
	return p, p.UnmarshalText([]byte(text))
}

// AgreeAsServer returns the key of a server that has a pair with an agent.
func (p *Private) AgreeAsServer(agent Public) (*Key, error) {
	return p.agree(agent, Public(p.key.PublicKey().Bytes()), agent)
}

// AgreeAsAgent returns the key of an agent that has a pair with a server.
func (p *Private) AgreeAsAgent(server Public) (*Key, error) {
	return p.agree(server, server, Public(p.key.PublicKey().Bytes()))
}

// agree derives the key from what both can compute, and from both public halves.
func (p *Private) agree(other, server, agent Public) (*Key, error) {
	public, err := ecdh.X25519().NewPublicKey(other[:])
	if err != nil {
		return nil, err
	}
	shared, err := p.key.ECDH(public)
	if err != nil {
		return nil, errors.New("what the other side sent is no public half of a key")
	}
	b, err := hkdf.Key(sha256.New, shared, append(server[:], agent[:]...), "sandpit handshake 1: key of server and agent", len(Key{}))
	if err != nil {
		return nil, err
	}
	k := Key(b)
	return &k, nil
}
