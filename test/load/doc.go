// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package load holds the campaigns: tests that drive a real server's program as
// a subprocess through its public API, hard and for long, and look from outside
// at what it leaves on the host.
//
// By default each is short; SANDPIT_SOAK=1 runs the full length. The package
// knows the client and package leaktest, and nothing of how a server works,
// except by which names its cgroups are to be known.
package load
