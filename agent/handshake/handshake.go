// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package handshake

import (
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"io"
	"net"
)

// Carries says what goes over a connection. The server chooses, and proves it with the rest.
type Carries byte

// What a connection may carry.
const (
	OneCall   Carries = 1 // of package wire
	ManyCalls Carries = 2 // by a mux
	Traffic   Carries = 3 // what the sandbox sends to the world, see package agent/traffic
)

// magic begins what an agent sends, with the version of the handshake.
const magic = "sbph\x01"

const (
	nonceLen = 32
	proofLen = 32
	helloLen = len(magic) + nonceLen
	chosen   = 1 + nonceLen // what the server sends before its proof
)

// The reasons for which a handshake fails, if the connection did not break.
var (
	// ErrNoAgent: what answers does not speak this protocol.
	ErrNoAgent = errors.New("what answers at the agent's address is no agent that was given a key")
	// ErrImpostor: what answers does not know the key.
	ErrImpostor = errors.New("what answers at the agent's address does not know the agent's key")
	// ErrRefused: the agent hung up on a proof, or had no room for one who had shown none yet.
	ErrRefused = errors.New("the agent hung up before it had shown that it knows the key")
	// ErrStranger: who connected does not know the key.
	ErrStranger = errors.New("who connected does not know the key")
)

// Server is the server's side. The connection that it returns is the sealed one, and nc its own from now on;
// after an error nc stays the caller's. Who calls it bounds its time by a deadline of nc.
func Server(nc net.Conn, key *Key, what Carries) (*Conn, error) {
	var sent [helloLen + chosen]byte
	if _, err := io.ReadFull(nc, sent[:helloLen]); err != nil {
		return nil, hungUp(err)
	}
	if string(sent[:len(magic)]) != magic {
		return nil, ErrNoAgent
	}
	sent[helloLen] = byte(what)
	_, _ = rand.Read(sent[helloLen+1:])
	if _, err := nc.Write(append(sent[helloLen:], key.derive(byServer, sent[:])...)); err != nil {
		return nil, hungUp(err)
	}
	var proof [proofLen]byte
	if _, err := io.ReadFull(nc, proof[:]); err != nil {
		return nil, hungUp(err)
	}
	if !hmac.Equal(proof[:], key.derive(byAgent, sent[:])) {
		return nil, ErrImpostor
	}
	return newConn(nc, key.derive(toServer, sent[:]), key.derive(toAgent, sent[:]))
}

// Agent is the agent's side, as Server. It calls proven, unless that is nil, once the server has shown that it
// knows the key, and before the server hears of it.
func Agent(nc net.Conn, key *Key, proven func()) (*Conn, Carries, error) {
	var sent [helloLen + chosen]byte
	copy(sent[:], magic)
	_, _ = rand.Read(sent[len(magic):helloLen])
	if _, err := nc.Write(sent[:helloLen]); err != nil {
		return nil, 0, err
	}
	var proof [proofLen]byte
	if _, err := io.ReadFull(nc, sent[helloLen:]); err != nil {
		return nil, 0, err
	}
	if _, err := io.ReadFull(nc, proof[:]); err != nil {
		return nil, 0, err
	}
	if !hmac.Equal(proof[:], key.derive(byServer, sent[:])) {
		return nil, 0, ErrStranger
	}
	if proven != nil {
		proven()
	}
	if _, err := nc.Write(key.derive(byAgent, sent[:])); err != nil {
		return nil, 0, err
	}
	c, err := newConn(nc, key.derive(toAgent, sent[:]), key.derive(toServer, sent[:]))
	return c, Carries(sent[helloLen]), err
}

// hungUp is the error of a server's side whose other end closed the connection.
func hungUp(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err) {
		return ErrRefused
	}
	return err
}
