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
// Whoever can connect to the socket is obeyed. It has to be where only the server gets at it: a
// command that runs as root in the same container gets at any path there. So root is denied
// unless [Config].Root says otherwise, and the socket is refused to all other users.
package plain
