// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package merged reads the files of a disk from outside of any sandbox: a layer upon an image, as an overlay mount of the
// two would show them, with nothing mounted.
//
// What is in a layer is hostile, and may be changing while it is read. A path is walked one name at a time, each
// opened in the directory that is open already, and no link is left to the kernel: where one leads is worked out
// here, and stays below the top of the tree. Nothing but a regular file is opened for its bytes, and nothing is
// opened for that before it is known to be one. Walks, lists and memory have bounds that do not depend on the tree.
//
// It must not know what a snapshot, an instance or an image is, or how they are kept.
package merged
