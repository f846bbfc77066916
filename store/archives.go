// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import "sandpit.dev/sandbox"

// UnownedArchives are archives of disks that no record of a sandbox or a snapshot owns: one that is being written
// is put here first, and one that is needed no more is put here until it is removed. So none is
// forgotten where it is kept.
type UnownedArchives interface {
	// Put adds an archive; adding it twice is fine.
	Put(a UnownedArchive) error
	// All returns all of them, in the order of their ids.
	All() ([]UnownedArchive, error)
	// Delete removes one; a missing one is not an error.
	Delete(id sandbox.ID) error
}

// UnownedArchive is an archive that no record of a sandbox owns.
type UnownedArchive struct {
	ID      sandbox.ID
	Sandbox sandbox.ID // whose disk it holds, or is to hold: a sandbox, or a snapshot
}
