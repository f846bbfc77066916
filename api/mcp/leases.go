// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"sync"
	"time"

	"sandpit.dev/sandbox"
)

// leases say until when the runs in progress may need their sandboxes, so that
// the end of one run never moves a sandbox's end into another.
type leases struct {
	mu    sync.Mutex
	until map[sandbox.ID]map[*runArgs]time.Time
}

func newLeases() *leases { return &leases{until: make(map[sandbox.ID]map[*runArgs]time.Time)} }

// set says until when r needs the sandbox, and gives the latest of all runs'.
func (l *leases) set(id sandbox.ID, r *runArgs, until time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until[id] == nil {
		l.until[id] = make(map[*runArgs]time.Time)
	}
	l.until[id][r] = until
	for _, t := range l.until[id] {
		if t.After(until) {
			until = t
		}
	}
	return until
}

// drop ends what r needs.
func (l *leases) drop(id sandbox.ID, r *runArgs) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.until[id], r)
	if len(l.until[id]) == 0 {
		delete(l.until, id)
	}
}
