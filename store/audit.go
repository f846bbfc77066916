// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"sandpit.dev/sandbox"
)

// Audit are the rows of the audit log, in a chain for each server that writes. Package audit has their form. Rows
// are only ever added, and the oldest of a chain deleted.
type Audit interface {
	// Last returns the number and the hash of a writer's newest row; 0 and nil where it has none.
	Last(writer string) (seq int64, hash []byte, err error)
	// Append adds a row. Its Seq is the one after the writer's last, which the caller has read in the same transaction.
	Append(r *AuditRow) error
	// List returns a page of rows without their hashes, newest first, and the cursor of the next one ("" at the end).
	List(q AuditQuery) (page []*AuditRow, next string, err error)
	// Count returns how many rows the query (without its page) matches.
	Count(q AuditQuery) (int, error)
	// Chain returns the rows of a writer in their order, with an ID greater than after, at most limit.
	Chain(writer string, after int64, limit int) ([]*AuditRow, error)
	// Newest returns the last rows of a writer, newest first, at most limit.
	Newest(writer string, limit int) ([]*AuditRow, error)
	// Matching returns rows that the query (without its page) matches, oldest first, with an ID greater than after, at
	// most limit. After is set in them.
	Matching(q AuditQuery, after int64, limit int) ([]*AuditRow, error)
	// Writers returns who has a mark, by name.
	Writers() ([]string, error)
	// Mark adds a checkpoint, or replaces the writer's of its kind.
	Mark(m AuditMark) error
	// Marks returns the checkpoints of a writer, by kind.
	Marks(writer string) ([]AuditMark, error)
	// Prune deletes the rows of a writer with an ID up to one, never its newest, and returns how many.
	Prune(writer string, upto int64) (int, error)
}

// AuditRow is one row. What is beside Body is for queries, and says the same.
type AuditRow struct {
	ID      int64 // grows by one per row of the whole store; set by Append
	Writer  string
	Seq     int64
	At      time.Time
	Type    sandbox.EventType
	Outcome string
	Project string
	Sandbox sandbox.ID
	Token   string // its id
	Actor   string // its name
	Body    []byte // UTF-8
	Hash    []byte
	After   []byte // the hash of the row before it; nil where that is not there, and from most queries
}

// AuditQuery selects rows. Zero fields select all.
type AuditQuery struct {
	Project  string
	Sandbox  sandbox.ID
	Token    string // by its id or its name
	Types    []sandbox.EventType
	Outcomes []string
	Since    time.Time // not before
	Until    time.Time // before
	Text     string    // a part of the body, letter case ignored
	Labels   []AuditLabel
	Oldest   bool   // oldest first; else newest first
	Limit    int    // as in SandboxQuery
	Cursor   string // of the page before; or:
	Offset   int    // rows to pass over, never with a Cursor
}

// AuditLabel selects rows by a label of the process that they are of.
type AuditLabel struct {
	Name  string
	Value string
	Part  bool // Value is a part of its value, letter case ignored
}

// AuditMark is a checkpoint of a chain.
type AuditMark struct {
	Writer    string
	Kind      string
	Seq       int64
	Hash      []byte
	At        time.Time
	Signature []byte
}
