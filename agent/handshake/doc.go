// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package handshake begins a connection between a server and an agent for which no kernel
// vouches: a socket that the sandbox's root can reach or replace, an address of a network, a
// stream that somebody else carries. Both sides show that they know a key, and what
// follows is sealed, so that who stands between them learns nothing, says nothing and
// repeats nothing.
//
//	agent   "sbph" 1, 32 random bytes
//	server  what the connection carries (1 byte), 32 random bytes, a proof
//	agent   a proof
//
// A proof is HMAC-SHA-256, by the key, of the prover's role and of all that was sent
// before the first proof. The roles differ, so neither side's proof is one of the other's;
// the random bytes do, so none is good for another connection. The agent proves nothing to
// who has not. Each direction has a key of its own, made in the same way, and goes in
// records:
//
//	[2 bytes length, big endian][length bytes, sealed by AES-256-GCM][16 bytes of its sum]
//
// whose nonce is their number. A record that was changed, left out, repeated or moved ends
// the connection. That it was cut off is for what is carried to notice.
package handshake
