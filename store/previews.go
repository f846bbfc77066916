// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"sandpit.dev/sandbox"
)

// PreviewLinks are the links to ports of sandboxes that can be listed and revoked. Those of a deleted sandbox are gone.
type PreviewLinks interface {
	// Insert adds a link; a taken id is fault.Exists.
	Insert(l *PreviewLink) error
	// Get returns a link; fault.NotFound if it does not exist.
	Get(id string) (*PreviewLink, error)
	// List returns the links of a sandbox, the oldest first.
	List(of sandbox.ID) ([]*PreviewLink, error)
	// Delete removes a link of a sandbox; fault.NotFound if it does not exist.
	Delete(of sandbox.ID, id string) error
	// Move makes all links of a sandbox those of another.
	Move(from, to sandbox.ID) error
	// Expire removes the links of a sandbox whose ExpiresAt is not after now.
	Expire(of sandbox.ID, now time.Time) error
}

// PreviewLink is the record of a link to a port.
type PreviewLink struct {
	ID        string // of the form of a sandbox's
	Sandbox   sandbox.ID
	Project   string
	Port      int
	CreatedAt time.Time
	ExpiresAt time.Time // zero: with the sandbox
	CreatedBy string    // who made it, as events call them
}
