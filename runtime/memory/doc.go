// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package memory is the fake among the drivers: sandboxes that are directories,
// with the real agent in this process and real commands on this host. It
// isolates nothing and limits nothing, says so in Probe, and is never linked
// into the product. What it does claim it keeps, as runtimetest shows, so that
// what is tested over it is tested over a driver.
//
// A [Host] is the machine that is pretended: instances live in it and outlive
// the drivers over it, as sandboxes outlive a server. What is on disk outlives
// the host too: after the process was killed, instances that were up are found
// down, with the cause host.
//
// A pause stops the processes of the commands' sessions and shuts a gate before
// the agent. A snapshot is a copy, and the image is five empty directories. A volume is a
// link in the disk while it is mounted: commands follow it, the agent's file API does
// not, and it can be written though it is read-only.
//
// It knows nothing of who drives it.
package memory
