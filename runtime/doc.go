// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package runtime is the contract of what isolates: a [Driver] makes sandboxes
// and finds them again, an [Instance] is one of them.
//
// # What a driver does, and does not
//
// A driver isolates, starts, stops and finds instances, and carries bytes to the agent: our
// program that is process 1 of every sandbox. It runs no commands, moves no files, keeps no
// records beyond what it needs to find its instances, and expires nothing. All that is written
// once, above it, in package engine, and reaches the inside through package agent.
//
// # Words
//
// An instance is up while its agent lives, and down otherwise. Its disk (root changes and
// workspace, one writable layer) outlives its processes: Stop takes the instance down and keeps
// the disk, Start brings it up again on the same disk, Remove ends both. A [Handle] is what a
// driver needs to find an instance after a restart of the server; it is opaque to all others.
//
// # Errors
//
// Drivers return errors of package fault: Unsupported with a reason for what this host cannot do,
// Exhausted if the host is full, NotFound for an instance that is gone, State for Dial on an
// instance that is down, Unavailable if a part does not answer.
package runtime
