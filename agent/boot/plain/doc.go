// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package plain starts an agent as an ordinary program, in a container that somebody
// else made: nothing is handed to it but the path of a file. It serves as process 1 where
// it is that, and as any other process else.
//
// What the native runtime prepares for its agent from outside is not there then. Each
// thing that the agent cannot do without it is told by its ping, with the reason: see
// the Lack constants of package wire.
//
// It serves on a unix socket, on an address of TCP, or over its standard input and output. Whoever
// comes begins with a handshake by the key that the file has, or that server and agent agree on; see package handshake. Only where the agent is
// root, no command is, and there is nothing but a socket, which is refused to all other users, the kernel
// vouches for who connects, and the key may be missing.
//
// [Step] makes the sockets that a sandbox's traffic comes to, beside the agent, which has no right to; see package
// agent/traffic.
//
// [Relay] reaches the socket from a program beside the agent, whose input and output somebody carries.
package plain
