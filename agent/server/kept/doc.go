// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package kept reads the status of processes that the kernel has reaped by itself, which
// it keeps for who has a pidfd of them since Linux 6.15.
//
// It is linked into the agent, which lives among untrusted code, and into the server,
// which tells its agents whether they can rely on it.
package kept
