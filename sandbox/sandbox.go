// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Workspace is where a sandbox's commands start and its relative paths begin.
const Workspace = "/workspace"

// Sandbox is the record of one sandbox: what its owner asked for, its state and its figures. It
// is a value; a change has no effect until the store takes it.
type Sandbox struct {
	ID      ID
	Project string // the owner; "default" is the first
	Key     string // the caller's own name, unique in the project; empty: none

	Image       string // the image's own name, resolved
	ImageDigest string // which build of it; the root that it runs on for ever
	AskedImage  string // what the caller wrote, as it was
	Runtime     string // "native", …

	Limits   Limits
	Env      map[string]string // of every command
	Metadata map[string]string // the caller's own labels
	Mounts   []Mount           // volumes
	Skills   []Skill           // installed on its disk, in the order of their installation
	Template *Template         // nil: not known, it is older than templates or was made by the server itself
	Network  NetworkPolicy     // in its normal form
	Sudo     bool              // its user may run commands as its root, and so is root
	Account  Account           // in its normal form
	Clocks

	State      State
	StopCause  Cause   // why it is stopped, paused or failed, when it is
	StopDetail string  // the evidence, for people
	Handle     []byte  // the driver's own, to find it again
	Restore    ID      // while it is Restoring: the snapshot that its disk is to become; zero: an empty disk
	Archive    Archive // where its disk is packed, while it is Archiving, Archived or Unarchiving

	Parent     ID // the snapshot that its disk descends from; zero: its image. It may be gone
	ForkedFrom ID // the sandbox that it was forked from; zero: none

	CreatedAt    time.Time
	UpdatedAt    time.Time
	StartedAt    time.Time     // of the last start
	StoppedAt    time.Time     // of the last stop or pause; zero while it runs
	LastActivity time.Time     // of the last call that counts
	RunningSince time.Time     // of the last start or resume; zero while it does not run
	RunTime      time.Duration // that it was running before RunningSince: what a meter counts

	// UnresponsiveSince is since when its agent has not answered; zero while it does, as far
	// as is known. No store keeps it.
	UnresponsiveSince time.Time

	ExecCount       int64
	ExecTime        time.Duration // of all commands together
	BytesUploaded   int64
	BytesDownloaded int64

	Previews   Previews // of what programs in it serve
	TokenRound int64    // how often the tokens for it alone were ended
	FileSalt   string   // of the key that signs addresses of its files; empty: that was never exchanged

	Revision int64 // counts its changes; the store's compare-and-swap
}

// Ref is how callers name it: its key if it has one, else its id.
func (s *Sandbox) Ref() string {
	if s.Key != "" {
		return s.Key
	}
	return string(s.ID)
}
