// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package bench measures sandpit beside what a user would pick instead, on one
// machine in one interleaved run.
//
// It needs no running server: it starts its own on a private data directory and
// a loopback port, with authentication on and every command recorded, measures
// it through the public API as a client would, and ends all that it started.
// Peers are measured pair by pair with sandpit, so that what else the machine
// does meets both; a ratio is the median over the pairs. Absolute figures mean
// little on a busy machine: the report says what the load was.
//
// The package knows the client, and nothing of how a server works.
package bench
