// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package leaktest says what a server holds of its host, so that two looks can
// be compared: processes, mounts in every mount namespace, cgroups, namespaces,
// sockets, descriptors, loop devices and directories.
//
// It looks from outside, through /proc and /sys, and asks the server nothing: a server that
// forgot a thing cannot report it. A [Scope] says what belongs to the one server, since others
// may run on the same host.
//
// What the kernel keeps without a name that /proc or /sys shows is not seen: a
// namespace that only a descriptor in flight holds, or slab memory. The package
// needs root to see what belongs to other users, and knows nothing of sandboxes.
package leaktest
