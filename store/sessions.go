// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"sandpit.dev/access"
)

// Sessions are the people who are signed in, and the codes that are good for one sign-in.
type Sessions interface {
	// Insert adds a session; a taken id or hash is fault.Exists.
	Insert(s *access.Session) error
	// ByHash returns the session with the hash of a secret; fault.NotFound if there is none.
	ByHash(hash []byte) (*access.Session, error)
	// List returns the sessions of a project, or of all for an empty one, the oldest first; no codes.
	List(project string) ([]*access.Session, error)
	// Touch sets LastUsedAt, never to an earlier time; fault.NotFound if the session does not exist.
	Touch(id string, at time.Time) error
	// Delete removes a session; fault.NotFound if it does not exist.
	Delete(id string) error
	// Expire removes those whose ExpiresAt is not after now, and sessions that were last used before idle.
	Expire(now, idle time.Time) error
}
