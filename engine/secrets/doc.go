// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package secrets opens the secrets of projects and sandboxes, keeps them open in memory,
// and keeps their values out of what is on record.
//
// A secret is sealed in the store, and bound there to its project, sandbox and name: one
// that is moved to another row does not open. A [Secret] is open: it has its value. An
// owner of secrets is a project itself, or one sandbox; a sandbox's own go before its
// project's of the same name, and what holds for it together is a [Set].
//
// A [Cache] keeps what it opened until it is told that it changed, so that a command pays
// neither a read nor a decryption. What it returns is shared and must not be changed.
// A value that does not open, its key being gone, is fault.Unavailable, and the error
// says which. The package is safe for concurrent use.
package secrets
