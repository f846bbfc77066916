// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package files answers the calls on a sandbox's files: it reads, writes, lists, searches, moves and removes
// them, and takes and sends trees as archives, with the rights of a view's user. It lives among untrusted code, as
// the agent does: what a path leads to is the kernel's to say at the moment it is opened, no file system of the
// kernel's is entered, and each call takes bounded time and memory.
//
// It must not know how a sandbox is isolated, and no command.
package files
