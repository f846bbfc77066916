// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"time"

	"sandpit.dev/fault"
)

// Snapshot is a sandbox's disk as it was at one instant: root changes and workspace together,
// without processes and without volumes. Its content never changes. Sandboxes are created from
// it, rolled back to it and compared with it.
type Snapshot struct {
	ID      ID // unique among sandboxes, snapshots and volumes
	Project string
	Sandbox ID     // whose disk it was; that sandbox may be gone. Zero: it was imported
	Name    string // unique among the snapshots of Sandbox, see CheckSnapshotName; empty: none
	Auto    bool   // a checkpoint that the engine took after a command
	Parent  ID     // the snapshot that the disk descended from; zero: the image. It may be gone

	Image       string
	ImageDigest string
	Runtime     string
	Limits      Limits            // of the sandbox then
	Env         map[string]string // likewise
	Account     Account           // likewise

	State     SnapshotState
	Archive   Archive // where its disk is; not whole: it is being written, and the disk is here
	SizeBytes int64   // what the disk held then, as far as the runtime counts it; else -1
	CreatedAt time.Time
	CreatedBy string // the actor
	Detail    string // for people: what it was taken of, for instance after which command
}

// Archived reports whether its disk is in the archive alone, or about to leave the fast store.
func (s *Snapshot) Archived() bool { return s.Archive.Whole() }

// SnapshotState is the state of a snapshot.
type SnapshotState string

const (
	SnapshotCreating SnapshotState = "creating" // intent; a crash undoes it
	SnapshotReady    SnapshotState = "ready"
	SnapshotDeleting SnapshotState = "deleting" // intent; a crash finishes it
)

// MaxSnapshotName is the longest name of a snapshot, in characters.
const MaxSnapshotName = 100

// MaxSnapshots is how many snapshots of one sandbox are kept, checkpoints included:
// each may hold a whole disk of its own.
const MaxSnapshots = 1000

// CheckSnapshotName checks the name of a snapshot: the rules are those of a key (see [CheckKey]),
// and at most MaxSnapshotName characters. A name never has the form of an id, and is neither
// "now" nor "base" nor "fresh", which name other points in time.
func CheckSnapshotName(field, name string) error {
	if err := CheckKey(field, name); err != nil {
		return err
	}
	if len([]rune(name)) > MaxSnapshotName {
		return fault.InvalidField(field, "is longer than %d characters (it starts with %q)", MaxSnapshotName, Clip(name, 40))
	}
	switch name {
	case "now", "base", "fresh":
		return fault.InvalidField(field, "%q means a point in time of its own; choose another name", name)
	}
	return nil
}
