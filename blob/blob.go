// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package blob is the contract of what keeps packed disks elsewhere than where sandboxes run: bytes
// by name. What keeps them may lose them, change them or be anybody's: who reads one checks it.
package blob

import (
	"context"
	"io"
	"regexp"

	"sandpit.dev/fault"
)

// Store keeps blobs. It is safe for concurrent use, of different names; its methods end with ctx.
//
// Errors: fault.Invalid for a name that none has, fault.NotFound, fault.Full, and fault.Unavailable
// for a store that does not answer, or not as it should.
type Store interface {
	// Put keeps what r has to its end, in place of what has the name. It is on stable storage when
	// Put returns. After an error no part of it can be opened; Remove frees the room that is left taken.
	Put(ctx context.Context, name string, r io.Reader) error
	// Open returns a blob from its beginning. The caller closes it. A missing one is
	// fault.NotFound, perhaps only when it is read.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// Remove deletes a blob, and what a Put that failed has left of it. A missing one is not an
	// error.
	Remove(ctx context.Context, name string) error
	// Place names the store for people, without a secret: "directory /srv/archive".
	Place() string
}

// Lister is implemented by stores that can tell what they have.
type Lister interface {
	// List calls each with the name of each blob, and of what a Put that failed has left, in no order; one may be told twice. It ends at the first
	// error. Blobs that come or go meanwhile may be told or not; each may Remove.
	List(ctx context.Context, each func(name string) error) error
}

// Purpose says for errors what a store is for.
type Purpose struct {
	Kept    string // "archives"
	Section string // of the configuration: "archive"
}

// Archives is the purpose of stores that have no other.
func Archives() Purpose { return Purpose{"archives", "archive"} }

var validName = regexp.MustCompile(`^[a-z0-9]{1,64}$`)

// CheckName checks the name of a blob: 1 to 64 lower-case letters and digits.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fault.InvalidField("name", "%.80q is not a valid name of a blob: it has 1 to 64 letters a-z and digits", name)
	}
	return nil
}

// Missing returns the error for a blob that is not there.
func Missing(s Store, name string) *fault.Error {
	return fault.New(fault.NotFound, "there is no %.80q in the %s", name, s.Place())
}
