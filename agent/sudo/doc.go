// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package sudo is what a sandbox's sudo and its agent say to each other, and which variables pass.
//
// No program of a sandbox gains rights by its file: no-new-privileges holds for all of them. So sudo
// asks the agent, process 1, over a socket that only this sandbox has, and the agent starts the
// command as root beside the caller. Package program is the sudo that people type; package
// agent/server decides and runs.
//
// # The protocol
//
// The caller connects, and sends one [Request] with exactly [Descriptors] descriptors: its stdin, stdout and
// stderr, and its working directory. Frames follow, both ways:
//
//   - the agent: Started, with the end of a terminal where one was asked for, and then Exited or Killed; or
//     Refused, with the reason;
//   - the caller: Signal. When it ends the connection, or itself, the command is killed.
//
// The agent trusts nothing that a caller sends: who it is the kernel says, and all rules of this package are
// the agent's to apply.
package sudo
