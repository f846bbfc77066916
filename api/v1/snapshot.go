// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// SnapshotType is the media type of a snapshot's archive.
const SnapshotType = "application/gzip"

// Snapshot is a sandbox's disk as it was at one instant, kept: root changes and
// workspace, without processes and without volumes.
type Snapshot struct {
	ID      string  `json:"id" jsonschema:"the server's name for it, for ever: 16 lower-case letters and digits"`
	Name    *string `json:"name" jsonschema:"unique among the snapshots of its sandbox; null: none"`
	Project string  `json:"project"`
	Sandbox *string `json:"sandbox_id" jsonschema:"whose disk it was; that sandbox may be gone; null: it was imported"`
	Auto    bool    `json:"auto" jsonschema:"a checkpoint that was taken by itself, after a command"`
	Parent  *string `json:"parent_snapshot" jsonschema:"the snapshot that the disk descended from, which may be gone; null: the image"`
	Status  string  `json:"status" jsonschema:"creating, ready, archived or deleting"`

	Image    string   `json:"image" jsonschema:"what the sandbox ran on"`
	Digest   string   `json:"image_digest" jsonschema:"which build of it"`
	Runtime  string   `json:"runtime"`
	CPUCores float64  `json:"cpu_cores" jsonschema:"of the sandbox then, and of one that is created from it and asks for nothing else; so are the next three"`
	MemoryMB int      `json:"memory_mb"`
	DiskMB   int      `json:"disk_mb"`
	Pids     int      `json:"pids"`
	EnvNames []string `json:"env_names" jsonschema:"names of the sandbox's variables then; values are never shown"`

	Archive *Archive `json:"archive,omitempty" jsonschema:"where its disk is while it is archived; a use brings it back"`

	SizeBytes *int64    `json:"size_bytes" jsonschema:"what the disk held beside its image; null where the host does not count it"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by" jsonschema:"the token's name, or system"`
	Detail    string    `json:"detail,omitempty" jsonschema:"what it was taken of, for people"`
}

// Ref is how to name the snapshot in a call.
func (s *Snapshot) Ref() string { return s.ID }

// SnapshotPage is one page of snapshots, newest first unless asked otherwise.
type SnapshotPage struct {
	Items      []Snapshot `json:"items"`
	Total      int        `json:"total" jsonschema:"how many there are on all pages"`
	NextCursor *string    `json:"next_cursor" jsonschema:"give it as cursor to go on; null at the end"`
}

// CreateSnapshot asks to keep a sandbox's disk as it is. Every field is optional.
type CreateSnapshot struct {
	Name    *string `json:"name,omitempty" jsonschema:"1 to 100 printable characters without a slash, unique among the sandbox's snapshots; one without a name is deleted with its sandbox"`
	Replace bool    `json:"replace,omitempty" jsonschema:"take the name from the snapshot that has it, and delete that"`
}

// RollbackSandbox asks to replace a sandbox's disk by that of a snapshot.
type RollbackSandbox struct {
	To string `json:"to" jsonschema:"the name of one of its snapshots, also as SANDBOX/NAME, the id of any, or base: the image, on which nothing was changed"`
}

// ForkSandbox asks for copies of a sandbox. Every field is optional.
type ForkSandbox struct {
	Count    *int              `json:"count,omitempty" jsonschema:"how many, 1 to 100; default 1"`
	From     *string           `json:"from,omitempty" jsonschema:"the name of one of its snapshots, also as SANDBOX/NAME, or the id of any; left out: the sandbox as it is now"`
	Key      *string           `json:"key,omitempty" jsonschema:"the fork's own key, where it is one; forks have none otherwise"`
	Metadata map[string]string `json:"metadata,omitzero" jsonschema:"labels of the forks; left out: those of the sandbox"`
}

// PromoteSandbox has a fork take its parent's place.
type PromoteSandbox struct {
	Name *string `json:"name,omitempty" jsonschema:"of the snapshot of what the parent was; left out: it has none"`
}

// SandboxList is all of something at once, in the order in which it was made.
type SandboxList struct {
	Items []Sandbox `json:"items"`
}

// Diff is what changed on a disk between two points in time.
type Diff struct {
	From      string       `json:"from" jsonschema:"as it was asked for; base: the image"`
	To        string       `json:"to" jsonschema:"as it was asked for; now: the sandbox as it is"`
	Items     []DiffChange `json:"items" jsonschema:"sorted by path"`
	Total     int          `json:"total" jsonschema:"how many there are, of which items may hold fewer"`
	Truncated bool         `json:"truncated,omitempty" jsonschema:"items does not hold all; ask with a higher limit"`
}

// DiffChange is one path that differs between both points.
type DiffChange struct {
	Path      string `json:"path" jsonschema:"absolute, inside the sandbox"`
	Escaped   bool   `json:"escaped,omitempty" jsonschema:"the name is not UTF-8: in path each byte that is not part of a character stands as \\xNN, and each backslash as two"`
	Action    string `json:"action" jsonschema:"created, modified or deleted"`
	SizeBytes int64  `json:"size_bytes" jsonschema:"at the later point; 0 when deleted"`
}
