// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// Bounds of what is kept of keyed requests.
const (
	// MaxKeyedRequests is how many a project has; the oldest go.
	MaxKeyedRequests = 10_000
	// MaxKeptAnswer is the most bytes of an answer that is kept.
	MaxKeptAnswer = 64 << 10
)

// KeyedRequest is a request with an idempotency key, and what came of it.
type KeyedRequest struct {
	ID        []byte // a hash of whose it is, of its route and its key
	Project   string
	Hash      []byte // of what it asks for; the same key with another one is another request
	CreatedAt time.Time
	Made      string // what it began or made, as its writer puts it
	Status    int    // of the answer; zero: there is none yet
	Header    string // of the answer, as its writer puts it
	Answer    []byte // nil: it is not kept
}

// Requests are the keyed requests that have begun or made something.
type Requests interface {
	// Get returns one by its ID.
	Get(id []byte) (*KeyedRequest, error)
	// Put adds a request. Of one with the same ID and CreatedAt it appends to Made, or where
	// r has a Status replaces Made and the answer; one with an earlier CreatedAt it replaces
	// whole, and one with a later it leaves. Of a project's more than MaxKeyedRequests the
	// oldest go.
	Put(r *KeyedRequest) error
	// Expire removes at most limit of those that were made before then, the first that
	// were put first, and returns how many it removed.
	Expire(before time.Time, limit int) (int, error)
	// Count returns how many a project has.
	Count(project string) (int, error)
}
