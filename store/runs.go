// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"sandpit.dev/sandbox"
)

// Runs are batches of commands, with their commands and events. Those of a deleted
// sandbox stay until they are deleted themselves.
type Runs interface {
	// Insert adds a run with its commands and sets its Number. A taken id is
	// fault.Exists.
	Insert(r *sandbox.Run) error
	// Get returns a run with its commands.
	Get(id string) (*sandbox.Run, error)
	// List returns a page of runs without their commands, and the cursor of the next
	// one ("" at the end).
	List(q RunQuery) (page []*sandbox.Run, next string, err error)
	// Count counts what the query (without its page) matches.
	Count(q RunQuery) (int, error)
	// Update replaces all of a run but its ID, Number, Project, Identifier, CreatedAt, DroppedAt
	// and commands; fault.NotFound if it does not exist.
	Update(r *sandbox.Run) error
	// UpdateCommand replaces the n-th command of a run; fault.NotFound if it does not exist.
	UpdateCommand(run string, n int, c *sandbox.RunCommand) error
	// Append adds an event to a run; its Seq is the caller's, and a taken one is
	// fault.Exists.
	Append(run string, e *sandbox.RunEvent) error
	// Events returns the events of a run with a greater Seq than after, at most limit, in order.
	// A run that does not exist has none.
	Events(run string, after int64, limit int) ([]*sandbox.RunEvent, error)
	// LastSeq returns the number of a run's last event, or 0.
	LastSeq(run string) (int64, error)
	// Drop sets DroppedAt of all runs of a sandbox that do not have it, and returns how many it
	// set. No other method sets it after Insert.
	Drop(of sandbox.ID, at time.Time) (int, error)
	// Delete removes a run with its commands and events; fault.NotFound if it does not exist.
	Delete(id string) error
	// Held returns how many bytes all kept artifacts have together, and all output.
	Held() (artifacts, output int64, err error)
}

// RunQuery selects runs. Zero fields select all.
type RunQuery struct {
	Project     string
	Sandbox     sandbox.ID
	Identifier  string // exact
	Live        bool   // only those that have not ended
	Ended       bool   // only those that have
	Kept        bool   // only those whose artifacts are kept
	Dropped     bool   // only those with a DroppedAt
	EndedBefore time.Time
	// Order: newest first by Number, unless Oldest.
	Oldest bool
	Limit  int // as in SandboxQuery
	Cursor string
}
