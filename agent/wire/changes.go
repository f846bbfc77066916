// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Bounds of what is told of changes. They hold on both sides.
const (
	MaxChanged      = 1000      // files of one OpChanges,
	MaxChangedBytes = 512 << 10 // and bytes of their paths
	MaxFileEvents   = 512       // of one Item of OpWatch
)

// What happened to a file.
const (
	Created    = "created"
	Modified   = "modified"
	Deleted    = "deleted"
	Renamed    = "renamed"    // OpWatch only, as those below
	Attributes = "attributes" // mode, owner, times, extended attributes
	Dropped    = "dropped"    // events are missing here
)

// ChangedFile is one file that is not as it was.
type ChangedFile struct {
	Path   string `json:"path"` // below the directory, escaped
	Action string `json:"action"`
	Size   int64  `json:"size,omitempty"`
}

// Changed is the Done of OpChanges.
type Changed struct {
	Total int    `json:"total"`         // how many there are, of which some were sent
	Why   string `json:"why,omitempty"` // why some may be missing, for people; empty: none is
}

// FileEvent is one change as OpWatch tells it. Path and From are absolute, and escaped.
type FileEvent struct {
	Type     string `json:"type"`
	Path     string `json:"path,omitempty"`
	From     string `json:"from,omitempty"`     // of a rename
	Exchange bool   `json:"exchange,omitempty"` // of a rename: what was at Path is at From now
	Dir      bool   `json:"dir,omitempty"`
	Dropped  int    `json:"dropped,omitempty"` // how many are missing, at least
}
