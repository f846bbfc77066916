// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package sqlstore keeps sandpit's records in an SQL data base: an embedded
// SQLite file. The statements are one text that Postgres reads too; the few
// differences stand in dialect.go.
//
// # How it is fast
//
// One connection writes and a few read, each with its statements prepared once.
// Updates take turns inside the process, so that none of them ever waits for
// SQLite's own lock; Views run beside them on a snapshot (WAL). A commit is a
// write to the page cache. The file is locked for this process alone, once, and the
// driver is spoken to without an [database/sql.DB] between.
//
// # How it is safe
//
// With synchronous=NORMAL a commit does not wait for the disk. The end of this
// process at any instant loses nothing, since the kernel has the data. For the
// end of the machine, sync.go flushes the write-ahead log soon after a commit:
// a power cut takes at most the last second, and whole transactions only,
// because each frame of the log carries a checksum and counts from its commit
// record on. A flush that the disk refuses ends all writing (see [Store.Update]).
//
// It must not know what a sandbox's life is: states, clocks and rights are the
// engine's.
package sqlstore
