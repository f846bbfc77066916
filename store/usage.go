// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"sandpit.dev/sandbox"
)

// Usage is what projects have used, which outlives their sandboxes. Figures add up: nothing that was added is
// taken away again, until its hour is so long ago that it is deleted.
type Usage interface {
	// Add adds to the figures of a project, a token and an hour.
	Add(u Used) error
	// Sum returns what was used, by what q says, in order of Project, Token and Time.
	Sum(q UsageQuery) ([]Used, error)
	// Prune deletes figures of hours before a time, the oldest first, until there are no more or it were limit: those of the
	// first project whose name is not less than from. It returns that project, "" where there is none, and how many it deleted.
	Prune(from string, before time.Time, limit int) (of string, deleted int, err error)

	// Tallied returns the figures of a sandbox's record as the transaction sees them, by its revision, without
	// reading the rest. A sandbox that does not exist, or has another revision, has none.
	Tallied(id sandbox.ID, revision int64) (Tallied, error)

	// Meter returns the meter of a sandbox; nil where it has none.
	Meter(id sandbox.ID) (*UsageMeter, error)
	// PutMeter adds a meter, or replaces that of its sandbox.
	PutMeter(m *UsageMeter) error
	// DeleteMeter removes that of a sandbox; one that is not there is no error.
	DeleteMeter(id sandbox.ID) error
	// Meters returns meters by the ids of their sandboxes: of those that are on record in a project ("": all), with a greater id
	// than after, at most limit. Of a project it reads no others.
	Meters(project string, after sandbox.ID, limit int) ([]*UsageMeter, error)
}

// Used is what was used of a server. Amounts by time are those that were promised, for as long as they were.
type Used struct {
	Project string
	Token   string    // the name of who began it: of a command who ran it, else who made the sandbox
	Time    time.Time // the beginning of the hour, or of the day

	Commands   int64
	ExecTime   time.Duration // of all commands together
	RunTime    time.Duration // of all sandboxes together
	CPUSeconds float64       // of processors
	// Of GiB:
	MemorySeconds, DiskSeconds float64
	Uploaded, Downloaded       int64 // bytes
}

// UsageQuery selects and groups what was used. Zero fields select all.
type UsageQuery struct {
	Project      string
	Token        string
	Since, Until time.Time // hours that begin in between; not at Until
	// What the sums are apart by; without any there is one, or none.
	ByProject, ByToken, ByHour, ByDay bool
}

// Tallied is the figures of a sandbox's record that only grow.
type Tallied struct {
	Commands, Uploaded, Downloaded int64
	ExecTime                       time.Duration
}

// UsageMeter is up to when the time of a sandbox has been added to what its project used.
type UsageMeter struct {
	Sandbox sandbox.ID
	Project string
	Token   string // who made it

	// What it is promised from now on.
	CPU              float64
	MemoryMB, DiskMB int
	Running          bool // processors and memory count
	Kept             bool // the disk counts: it is on this host

	Run       time.Duration // that was added, of all times that it ran
	RunUntil  time.Time     // while it is Running: of the present one
	DiskUntil time.Time     // while it is Kept
}
