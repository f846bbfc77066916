// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"sync"

	"sandpit.dev/access"
)

// maxCached bounds the tokens that are kept in memory, to about 2 MB.
const maxCached = 4096

// cache holds the tokens that were valid lately. Only valid ones get in, so
// that guesses push nothing out.
type cache struct {
	mu     sync.RWMutex
	tokens map[digest]*access.Token // records are never changed once in here
	gen    uint64                   // counts what may have made a read record old
}

func (c *cache) init() { c.tokens = make(map[digest]*access.Token) }

func (c *cache) get(sum digest) *access.Token {
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

// put keeps a record, unless one was deleted since it was read: it could be this one, which would
// then stay valid here.
func (c *cache) put(sum digest, t *access.Token, generation uint64) {
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
