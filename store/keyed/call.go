// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"bytes"
	"sync"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Kind is what a request makes.
type Kind string

// The kinds.
const (
	Sandbox  Kind = "sandbox"
	Process  Kind = "process" // a command, a terminal or a cell
	Snapshot Kind = "snapshot"
	Volume   Kind = "volume"
	Run      Kind = "run"
	Context  Kind = "context" // of code, or a shell
	Token    Kind = "token"
	// Change is a change of a sandbox that a verb has done: its ID is the type of the event that tells of it.
	Change Kind = "change"
)

// Thing is something that a request made.
type Thing struct {
	Kind    Kind
	ID      string
	Sandbox sandbox.ID // that it is in; empty: none
}

// Call is one request with a key, from its Begin to its End.
type Call struct {
	keys  *Keys
	makes []Kind

	mu     sync.Mutex
	prior  *store.KeyedRequest
	record store.KeyedRequest
}

// Prior returns what is kept of the same request that came before; nil: this is the first.
func (c *Call) Prior() *store.KeyedRequest { return c.prior }

// Renew has the request begin anew: what came before has made nothing, or nothing is left of it.
func (c *Call) Renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prior = nil
	c.renew(&c.record)
}

// renew makes the record that of a new attempt, which its time distinguishes from earlier ones.
func (c *Call) renew(r *store.KeyedRequest) {
	at := c.keys.now().UTC().Truncate(time.Microsecond)
	if !at.After(r.CreatedAt) { // a clock may be set back
		at = r.CreatedAt.Add(time.Microsecond)
	}
	c.record = store.KeyedRequest{ID: r.ID, Project: r.Project, Hash: r.Hash, CreatedAt: at}
}

// Made returns what the request has made so far, the earlier ones of its kind included.
func (c *Call) Made() []Thing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return things(c.record.Made)
}

// Answer has an answer kept, behind the caller's back. One that is too large is left out. Of
// a request that was answered before, the first answer stays.
func (c *Call) Answer(status int, header string, answer []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.record.Status != 0 {
		return
	}
	c.record.Status, c.record.Header = status, header
	if len(answer) <= store.MaxKeptAnswer {
		c.record.Answer = bytes.Clone(answer)
	}
	r := c.record
	c.keys.keep(&r)
}

// End ends the call, once.
func (c *Call) End() {
	c.keys.mu.Lock()
	defer c.keys.mu.Unlock()
	delete(c.keys.working, string(c.record.ID))
}
