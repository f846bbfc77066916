// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package overroot has a container keep what is changed of its root on a disk: an overlay over the root becomes the root, with the
// container's other mounts in it. It is for process 1 of a container that may mount, and knows neither agents nor containers' makers. What
// is on the disk is untrusted: no link in it is followed.
package overroot
