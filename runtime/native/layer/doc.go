// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package layer keeps the writable layers of native sandboxes on disk.
//
// A layer is one directory tree with two directories in it: `upper`, which an
// overlay mount takes as its upper layer, and `work`, which the same mount
// needs beside it. User ids in it are canonical (the sandbox's root is 0 on
// disk); the caller maps them by an idmapped clone of the mount. Where the
// store is btrfs, each layer is one subvolume, so that it can be limited and
// snapshotted by itself. The logs of a sandbox's processes lie in a directory
// of their own beside the layers, in the same file system: neither a snapshot
// nor the disk limit includes them.
//
// The package knows directories, subvolumes, quotas and loop devices. It must
// not know of overlay mounts, user namespaces, images, processes or records:
// what is in `upper` is hostile to it, and it never follows a link there.
package layer
