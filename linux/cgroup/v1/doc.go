// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 limits what the commands of a sandbox use on hosts whose controllers are still those
// of cgroup v1. It is what package cgroup turns to for a controller that cgroup2 does not have.
//
// A v1 controller limits threads. Its group sandpit/NAMESPACE/ID holds the commands of one sandbox
// and nothing else. The agent is in a group of its own, sandpit/NAMESPACE/_agentNUMBER, which has
// other limits; those of its threads that fork commands move themselves, by writing "0" to files
// that the daemon opened ([Tree.JoinFiles]), and what they fork is born limited.
//
// Nothing here is tuned for speed: who wants that has cgroup2.
package v1
