// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package store is the contract of what keeps sandpit's records: sandboxes,
// snapshots, volumes, events and tokens.
//
// # Transactions
//
// All reading and writing happens inside View or Update. An Update commits when
// its function returns nil, and leaves nothing when it returns an error or
// panics. Updates are serialised; Views see one point in time. A change of a sandbox and the
// event that records it belong in one Update: they commit together or not at all. Inside a
// function that was passed to View or Update, call neither: it could wait for itself. A context
// that ends before the commit undoes the transaction.
//
// # Values
//
// What is read equals what was written: any bytes in any text, including NUL and invalid UTF-8.
// Times come back in UTC, cut to the microsecond; an empty map or slice comes back as nil.
//
// # Durability
//
// A committed Update survives the end of the process at any instant. It reaches
// the disk within a second, so that a power cut may take the last second and
// never a part of a transaction.
//
// # Errors
//
// fault.NotFound for a missing row, fault.Exists for a taken id or key,
// fault.Conflict for a revision that is not current, fault.Invalid for a cursor
// that this store did not make, fault.Full when the disk is full,
// fault.Unavailable when the disk or the database does not answer, and the
// context's own error when that ended.
//
// Every row has a project, and every query is by project: callers of one never
// see rows of another. An empty project in a query means all of them; only the
// engine's own repairs and administrators ask that.
package store
