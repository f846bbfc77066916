// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"sync"
	"time"

	"sandpit.dev/access"
)

// maxCached bounds the tokens that are kept in memory, to about 2 MB.
const maxCached = 4096

// cache holds the tokens that were valid lately. Only valid ones get in, so
// that guesses push nothing out.
type cache struct {
	mu     sync.RWMutex
	tokens map[digest]*held
	gen    uint64 // counts what may have made a read record old
}

// held is a token as one of its secrets finds it. It is never changed once in the cache.
type held struct {
	*access.Token
	until time.Time // of a secret that a rotation replaced: when it is valid no more; else zero
}

// ends returns when the secret is valid no more, zero for never.
func (h *held) ends() time.Time {
	if h.until.IsZero() || !h.ExpiresAt.IsZero() && h.ExpiresAt.Before(h.until) {
		return h.ExpiresAt
	}
	return h.until
}

// check returns the error of a secret that is past its time at now.
func (h *held) check(now time.Time) error {
	if h.Expired(now) {
		return refuse("the bearer token %q expired at %s", h.Name, h.ExpiresAt.Format(time.RFC3339))
	}
	if !h.until.IsZero() && !now.Before(h.until) {
		return replaced()
	}
	return nil
}

// replaced returns the error of a secret that a rotation replaced, and whose grace is over.
func replaced() error { return refuse("the bearer token was replaced by a newer one (rotated)") }

func (c *cache) init() { c.tokens = make(map[digest]*held) }

func (c *cache) get(sum digest) *held {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tokens[sum]
}

// generation is called before a record is read, and its result is passed to put with it.
func (c *cache) generation() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.gen
}

// put keeps a record, unless one was deleted or rotated since it was read: it could be this one, which would
// then stay valid here.
func (c *cache) put(sum digest, t *held, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gen != generation {
		return
	}
	if len(c.tokens) >= maxCached {
		for other := range c.tokens { // any one; the map's order is random
			delete(c.tokens, other)
			break
		}
	}
	c.tokens[sum] = t
}

func (c *cache) drop(sum digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, sum)
}

// clear forgets everything; the next use of a token reads it again.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen++
	clear(c.tokens)
}
