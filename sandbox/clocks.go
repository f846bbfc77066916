// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Clocks are the times at which a sandbox ends by itself. All can be changed at any time, with
// effect from then on.
type Clocks struct {
	IdleTimeout  time.Duration // idle this long → OnIdle; zero: never
	OnIdle       IdleAction
	Retention    time.Duration // stopped this long → deleted; zero: never
	ArchiveAfter time.Duration // stopped this long → archived; zero: never
	AutoDelete   bool          // deleted as soon as it is stopped, whatever stopped it
	ExpiresAt    time.Time     // absolute: OnExpiry then, whatever it does; zero: never
	OnExpiry     ExpiryAction
	TTL          time.Duration // sliding: deleted when it was not used for this long, running or not; zero: never

	AutoStart   bool        // a call starts or resumes it when a clock or the host took it down
	AutoResume  bool        // a call resumes it also when a caller paused it
	Checkpoints Checkpoints // snapshots that are taken by themselves

	RetentionDefault bool // Retention is the server's, and follows it: nobody asked for another
}

// IdleAction is what happens to an idle sandbox.
type IdleAction string

const (
	IdleStop  IdleAction = "stop"
	IdlePause IdleAction = "pause"
)

// ExpiryAction is what happens to a sandbox at its ExpiresAt. All but the deletion spend that date: it is zero after.
type ExpiryAction string

// The actions. The empty one is to delete.
const (
	ExpiryDelete ExpiryAction = "delete"
	ExpiryStop   ExpiryAction = "stop"  // what is down already stays as it is
	ExpiryPause  ExpiryAction = "pause" // likewise what does not run
)

// Spends reports whether a sandbox outlives its ExpiresAt.
func (a ExpiryAction) Spends() bool { return a == ExpiryStop || a == ExpiryPause }

// Checkpoints says when a sandbox's disk is kept automatically.
type Checkpoints string

const (
	CheckpointsOff     Checkpoints = "off"
	CheckpointsCommand Checkpoints = "command" // after each command that changed a file of the workspace
)

// KeptCheckpoints is how many of them a sandbox keeps; older ones are deleted.
const KeptCheckpoints = 50

// Defaults and bounds of the clocks.
const (
	DefaultIdleTimeout = 30 * time.Minute
	DefaultRetention   = 7 * 24 * time.Hour
	MinClock           = time.Second
	MaxClock           = 366 * 24 * time.Hour
)
