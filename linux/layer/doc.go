// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package layer keeps the disks of native sandboxes: writable layers, snapshots of
// them, and volumes.
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
// A snapshot is what a layer was at one moment, for good. On btrfs it is a snapshot of
// the subvolume, and a layer that is made of it, or exchanged for it, is one again, as a fork of
// a layer is: no
// layer ever lies upon another, and what they cost has a bound that does not depend on
// how much is in them. In plain directories all of them are copies. `work`
// belongs to one mount and is made anew in every copy; the id of the overlay in `upper`
// is replaced, so that those who watch two copies can tell them apart. Everything
// that takes several steps is made in a staging area, and renamed or exchanged into its
// place: what a killed server left there, the next Open throws away.
//
// Quotas are simple ones: bytes count to the subvolume that wrote them, as long as
// anything holds them. A layer's limit so covers what it wrote and its snapshots still
// hold, and a copy begins with all of its own.
//
// Trees of a store can be compared and archived: Diff, Export, Import.
//
// The package knows directories, subvolumes, quotas and loop devices. It must
// not know of overlay mounts, user namespaces, images, processes or records:
// what is in `upper`, in a volume or in an archive is hostile to it, and it never
// follows a link there. However deep or wide a tree is, it is gone through with few
// descriptors and little memory.
package layer
