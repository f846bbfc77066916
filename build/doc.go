// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package build makes images in sandboxes: it does the steps of a catalogue's entry to a base, each as
// the root of a sandbox of this server, and hands on what they changed. It stands above the engine, of
// which it needs what [Engine] lists, and is the [image.Builder] of the server. It knows no coat, no
// driver and no file of an image.
//
// # The sandbox of a build
//
// It belongs to [Project], which no token can name, so nobody lists or enters it; in the figures of the
// server it counts like every other. It reaches what the host's own package tools are set to, also at
// private addresses, and hosts that the entry lists; the widest mode of the operator's holds for it,
// too. A proxy of the host's is not handed on: what it would let through is more than a mirror.
// It is deleted when the build ends. The builds of a server that was killed are deleted when the next
// one is ready, and a clock deletes what all of this misses.
//
// # What is kept of a step
//
// After each step all processes end and the disk is kept as a snapshot, whose name is the hash of the
// base and of all steps so far. A build begins at the last step that is kept, for a day: later its
// packages are better resolved anew.
package build
