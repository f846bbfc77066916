// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Names of the server-sent events of a watch besides those of its WatchEvents,
// each of which is named by its type. The ids of those are their seq.
const (
	WatchBegun = "watching" // data: Watching; the first event
	WatchEnded = "end"      // data: WatchEnd; the last event. A StreamError is the other last one
)

// Watching says that a watch is in place: every later change is reported.
type Watching struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
}

// WatchEvent is one change in a watched directory.
type WatchEvent struct {
	Seq      int64     `json:"seq" jsonschema:"counts the events of this watch from 1"`
	Type     string    `json:"type" jsonschema:"created, modified, deleted, renamed, attributes (mode, owner, times) or dropped"`
	Path     string    `json:"path,omitempty" jsonschema:"absolute, inside the sandbox"`
	From     string    `json:"from,omitempty" jsonschema:"of renamed: where it was. One that comes from outside of the watched directory is created, one that goes out is deleted"`
	Exchange bool      `json:"exchange,omitempty" jsonschema:"of renamed: what was at path is at from now"`
	Escaped  bool      `json:"escaped,omitempty" jsonschema:"a name is not UTF-8: in path and from each byte that is not part of a character stands as \\xNN, and each backslash as two"`
	IsDir    bool      `json:"is_dir,omitempty"`
	Time     time.Time `json:"time" jsonschema:"when it was noticed, some milliseconds after the change"`
	Dropped  int       `json:"dropped,omitempty" jsonschema:"of dropped: how many events are missing here, at least; list the directory to see what is there"`
}

// WatchEnd is how a watch ended.
type WatchEnd struct {
	Reason string `json:"reason" jsonschema:"removed (the directory was removed or moved away) or stopped (the sandbox went down)"`
	Detail string `json:"detail,omitempty" jsonschema:"for people"`
}
