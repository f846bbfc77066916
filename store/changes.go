// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// Changes are the changes of records of sandboxes, snapshots, volumes, templates and images, in the order of their commits.
type Changes interface {
	// Append adds a change and sets its Seq.
	Append(c *Change) error
	// List returns the changes with a greater Seq, oldest first, at most limit.
	List(after int64, limit int) ([]*Change, error)
	// Bounds returns the Seq of the oldest and of the newest; zeros where there is none.
	Bounds() (oldest, newest int64, err error)
	// Prune deletes those with a Seq up to one, oldest first, at most limit and never the newest of all, so that no Seq
	// is used twice. It returns how many it deleted.
	Prune(upto int64, limit int) (int, error)
}

// Change is one change of a record.
type Change struct {
	Seq     int64  // grows by one per change of the whole store
	Project string // "": it is the server's, and all projects see it
	Type    string // sandbox.started, snapshot.deleted, …
	At      time.Time
	Actor   string // who; "": not known
	Via     string
	Subject string // the id of what changed
	Object  []byte // how that is shown, after the change; of what was deleted before it
}
