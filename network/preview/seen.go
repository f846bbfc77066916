// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import "sync"

// seen remembers which links were followed, so that the store is not asked each
// time. To forget one costs a question to the store.
type seen struct {
	mu    sync.Mutex
	links map[string]struct{}
}

const maxSeen = 10_000

func (s *seen) has(link string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.links[link]
	return ok
}

func (s *seen) add(link string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links == nil || len(s.links) >= maxSeen {
		s.links = make(map[string]struct{})
	}
	s.links[link] = struct{}{}
}
