// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Workspace is where a sandbox's commands start and its relative paths begin.
const Workspace = "/workspace"

// Defaults of the clocks.
const (
	DefaultIdleTimeout = 30 * time.Minute
	DefaultRetention   = 7 * 24 * time.Hour // stopped this long → deleted
	MaxClock           = 366 * 24 * time.Hour
)

// Sandbox is the record of one sandbox: what its owner asked for, where it
// stands, and what became of it. It is a value; changing one changes nothing
// until the store takes it.
type Sandbox struct {
	ID      ID
	Project string // the owner; "default" is the first
	Key     string // the caller's own name, unique in the project; empty: none

	Image       string // the image's own name, resolved
	ImageDigest string // which build of it; the root that it runs on for ever
	AskedImage  string // what the caller wrote, as it was
	Runtime     string // "native", …

	Limits      Limits
	Env         map[string]string // of every command
	Metadata    map[string]string // the caller's own labels
	IdleTimeout time.Duration     // idle this long → stopped; zero: never
	Retention   time.Duration     // stopped this long → deleted; zero: never
	ExpiresAt   time.Time         // deleted then, whatever it does; zero: never

	State      State
	StopCause  Cause  // why it is stopped, when it is
	StopDetail string // the evidence, for people
	Handle     []byte // the driver's own, to find it again

	CreatedAt    time.Time
	UpdatedAt    time.Time
	StartedAt    time.Time // of the last start
	StoppedAt    time.Time // zero while it runs
	LastActivity time.Time // of the last call that counts

	ExecCount       int64
	ExecTime        time.Duration // of all commands together
	BytesUploaded   int64
	BytesDownloaded int64

	Revision int64 // counts its changes; the store's compare-and-swap
}

// Ref is how callers name it: its key if it has one, else its id.
func (s *Sandbox) Ref() string {
	if s.Key != "" {
		return s.Key
	}
	return string(s.ID)
}
