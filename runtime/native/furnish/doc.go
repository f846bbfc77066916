// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package furnish makes a native sandbox's inside: its root with all mounts, the
// user's view of it, its host name and loopback. It does so from outside, by a tape
// of system calls (see [spawn.Tape]) that a child of the server plays in the sandbox's
// namespaces while the agent, process 1, starts; each takes a millisecond. No code
// of the sandbox's runs before both are done.
//
// # The root
//
// The overlay comes as a detached mount. /dev, /proc, /sys and /dev/shm are
// moved into it through descriptors, then it becomes the root and the copy of the
// host's tree is let go. Nothing of the image is followed on the way: each mount
// point is opened below the overlay without links.
//
// # Volumes
//
// Volumes come as detached mounts too, with the directories of the overlay where
// they go. They are attached last, by a tape of their own, in process 1's namespace,
// and appear in the user's view by themselves.
//
// # The user's view
//
// The user's commands have a mount namespace of their own, in which only the
// user's directories are writable; those of the sandbox's root use process 1's.
// What process 1 mounts later appears in both. The agent gets the user's
// namespace as a descriptor and enters it with one thread.
package furnish
