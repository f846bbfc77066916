// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"runtime"
	"sync"
)

// spread has Go use a second processor while there is work for two. An agent has one, which is enough for all else that
// it does, and keeps its memory and threads few: two threads that look at files would take turns on that.
type spread struct {
	mu    sync.Mutex
	users int
	was   int // processors before the first; 0: it changed nothing
}

func (s *spread) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users++; s.users == 1 && runtime.GOMAXPROCS(0) == 1 && runtime.NumCPU() > 1 {
		s.was = runtime.GOMAXPROCS(2)
	}
}

func (s *spread) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 && s.was > 0 {
		runtime.GOMAXPROCS(s.was)
		s.was = 0
	}
}
