// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mount wraps the kernel's descriptor-based mount calls (fsopen,
// fsmount, open_tree, move_mount, mount_setattr).
//
// A mount made by them is detached: it belongs to a descriptor, appears in no
// mount namespace until it is moved into one, and is gone when the last
// descriptor closes. That is why the host never sees a sandbox's file systems,
// and why a server that is killed leaves none behind.
package mount
