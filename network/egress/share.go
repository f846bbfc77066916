// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import "sync"

// Shares bound what looking for values takes of the processor: the answers to one project's sandboxes
// are looked through one after the other, in pieces, so that they keep one core busy at most.
// The zero value has none.
type Shares struct {
	mu   sync.Mutex
	open map[string]*Share
}

// Share is one project's. A nil Share has no bound.
type Share struct {
	of      *Shares
	project string
	users   int
	turn    sync.Mutex
}

// Open returns the share of a project. Each is to be closed.
func (s *Shares) Open(project string) *Share {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.open[project]
	if p == nil {
		if s.open == nil {
			s.open = make(map[string]*Share)
		}
		p = &Share{of: s, project: project}
		s.open[project] = p
	}
	p.users++
	return p
}

// Close ends one use of the share.
func (p *Share) Close() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(p.of.open, p.project)
	}
}

// look calls f when it is its turn.
func (p *Share) look(f func()) {
	if p != nil {
		p.turn.Lock()
		defer p.turn.Unlock()
	}
	f()
}
