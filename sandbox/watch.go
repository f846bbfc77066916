// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// FileEventType is the kind of change that a [FileEvent] reports.
type FileEventType string

const (
	FileCreated    FileEventType = "created"
	FileModified   FileEventType = "modified"
	FileDeleted    FileEventType = "deleted"
	FileRenamed    FileEventType = "renamed"
	FileAttributes FileEventType = "attributes" // mode, owner, times, extended attributes
	// FileDropped: events are missing here. A program that keeps a copy of the directory's state
	// has to read it again.
	FileDropped FileEventType = "dropped"
)

// FileEvent is one change below a watched directory.
type FileEvent struct {
	Seq  int64 // counts the events of one watch from 1; set by the engine
	Type FileEventType
	// Path is absolute, inside. From is where a renamed file was; with Exchange,
	// what was at Path is there now. Both are always valid UTF-8: with Escaped,
	// each byte of the names that is not part of a character stands as \xNN, and
	// each backslash as two.
	Path, From string
	Exchange   bool
	Escaped    bool
	IsDir      bool
	At         time.Time // when it was noticed, some milliseconds after the change
	Dropped    int       // of FileDropped: how many are missing, at least
}
