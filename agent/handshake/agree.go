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

// A configuration that others may read, as they may the arguments of a pod, cannot hold a key. Server and agent then agree
// on one by Diffie-Hellman: the server's public key is in the configuration, and the agent's in its log, which nobody else writes to.

// Private is the private key of a pair, which its maker keeps.
type Private struct{ key *ecdh.PrivateKey }

// Public is the public key of a pair, which anybody may know.
type Public [32]byte

// NewPair returns a new pair of keys of X25519.
func NewPair() (*Private, Public, error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, Public{}, err
	}
	return &Private{key}, Public(key.PublicKey().Bytes()), nil
}

// MarshalText returns p in base64.
func (p *Public) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, p[:]), nil
}

// UnmarshalText sets p to what MarshalText returned.
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

// announces begins the line of an agent's log with its public key.
const announces = "sandpit-agent "

// Line returns the line of an agent's log with p, without the newline.
func (p *Public) Line() string {
	return announces + base64.StdEncoding.EncodeToString(p[:])
}

// ParseLine returns the key of a line that Line returned.
func ParseLine(line string) (p Public, err error) {
	text, found := strings.CutPrefix(line, announces)
	if !found {
		return p, errors.New("it does not tell a key")
	}
	return p, p.UnmarshalText([]byte(text))
}

// AgreeAsServer returns the key that the server with the pair of p has in common with the agent.
func (p *Private) AgreeAsServer(agent Public) (*Key, error) {
	return p.agree(agent, Public(p.key.PublicKey().Bytes()), agent)
}

// AgreeAsAgent returns the key that the agent with the pair of p has in common with the server.
func (p *Private) AgreeAsAgent(server Public) (*Key, error) {
	return p.agree(server, server, Public(p.key.PublicKey().Bytes()))
}

// agree derives the key from the secret that p and other have in common, and from both public keys.
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
