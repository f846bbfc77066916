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

// KeyedRequest is a request with an idempotency key, and its result.
type KeyedRequest struct {
	ID        []byte // a hash of whose it is, of its route and its key
	Project   string
	Hash      []byte // of what it asks for; the same key with another one is another request
	CreatedAt time.Time
	Made      string // what it began or made, as its writer puts it
	Status    int    // of the answer; zero: not answered yet
	Header    string // of the answer, as its writer puts it
	Answer    []byte // nil: it is not kept
}

// Requests are the keyed requests that have begun or made something.
type Requests interface {
	// Get returns a request by its ID.
	Get(id []byte) (*KeyedRequest, error)
	// Put adds a request. If one with the same ID and CreatedAt exists, it appends to its Made,
	// or if r has a Status replaces Made and the answer. It replaces one with an earlier
	// CreatedAt completely, and does nothing if one has a later. If a project has more than
	// MaxKeyedRequests, it deletes the oldest.
	Put(r *KeyedRequest) error
	// Expire removes at most limit requests that were made before then, those that were put
	// first, and returns how many it removed.
	Expire(before time.Time, limit int) (int, error)
	// Count returns how many a project has.
	Count(project string) (int, error)
}
