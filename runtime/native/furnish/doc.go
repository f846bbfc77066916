// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package furnish makes a native sandbox's inside: its root with all mounts, the
// user's view of it, its host name and loopback. It does so from outside, by a script
// of system calls (see [spawn.Script]) that a child of the server runs in the sandbox's
// namespaces while the agent, process 1, starts; each takes a millisecond. No code
// of the sandbox's runs before both are done.
//
// # The root
//
// The overlay comes as a detached mount, and is attached over the empty root that
// process 1 was born with. /dev and /sys come detached too, from a [Kit] that was made
// ahead, and are moved into it through descriptors, as is the /proc that process 1 made.
// Then it becomes the root, by chroot, in the child that runs the script and, a little later,
// in process 1; whoever enters the mount namespace gets there by itself. Nothing of the
// image is followed on the way: each mount point is opened below the overlay without links.
//
// /sys has a few files, which the agent writes: they tell the sandbox's limits and use, and some
// lie over files of /proc that tell the host's.
//
// What stays below is empty and read-only, with a /proc of no processes, and is held
// there by the kernel: it came from a mount namespace with more rights.
//
// # Volumes
//
// Volumes come as detached mounts too, with the directories of the overlay where
// they go. They are attached last, by a script of their own, in process 1's namespace,
// and appear in the user's view by themselves.
//
// # The user's view
//
// The user's commands have a mount namespace of their own, in which only the
// user's directories are writable; those of the sandbox's root use process 1's.
// What process 1 mounts later appears in both. The agent gets the user's
// namespace as a descriptor and enters it with one thread.
package furnish
