// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"sandpit.dev/sandbox"
)

// NetworkRequests are what was asked for sandboxes' networks and waits for a person. Those of a deleted
// sandbox are gone.
type NetworkRequests interface {
	// Insert adds a request; a taken id is fault.Exists.
	Insert(r *NetworkRequest) error
	// All returns all requests, the oldest first.
	All() ([]*NetworkRequest, error)
	// Delete removes a request; fault.NotFound if it does not exist.
	Delete(id string) error
	// Expire removes the requests whose Until is not after now.
	Expire(now time.Time) error
}

// NetworkRequest is a request for a sandbox's network. No preset, domain or source has a space in it.
type NetworkRequest struct {
	ID      string
	Sandbox sandbox.ID
	Ref     string // what the sandbox was called
	Project string
	Presets []string
	Domains []string
	Names   []sandbox.PresetDomain
	Why     string
	Actor   string
	At      time.Time
	Until   time.Time
}
