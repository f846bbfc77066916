// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"sync"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// stubborn is a store whose disk is full after the first refuse-1 Updates: from
// the refuse-th on it takes nothing, until healed.
type stubborn struct {
	store.Store

	mu     sync.Mutex
	n      int
	refuse int // 0: takes all
}

func (s *stubborn) Update(ctx context.Context, fn func(store.Tx) error) error {
	s.mu.Lock()
	s.n++
	no := s.refuse > 0 && s.n >= s.refuse
	s.mu.Unlock()
	if no {
		return fault.New(fault.Unavailable, "the disk is full")
	}
	return s.Store.Update(ctx, fn)
}

// after has the store refuse all Updates but the next n.
func (s *stubborn) after(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.refuse = 0, n+1
}

func (s *stubborn) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = 0
}
