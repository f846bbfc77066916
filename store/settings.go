// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// Settings are what calls have set of the server's settings, by name.
type Settings interface {
	// Put adds what is set, or replaces it.
	Put(s Setting) error
	// List returns all, by name.
	List() ([]Setting, error)
	// Delete removes one; one that is not set is no error.
	Delete(name string) error
}

// Setting is a setting that a call has set.
type Setting struct {
	Name      string
	Value     string // JSON
	ChangedAt time.Time
	ChangedBy string // the token's name
}
