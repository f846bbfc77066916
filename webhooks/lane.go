// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandpit.dev/store"
)

// Attempts are made in two lanes. One that has no answer by quickBound leaves the quick lane: into the slow one where that
// has room, and else it is broken off, and made again there in its turn. What is slow stays in the slow lane until an
// attempt is quick. So receivers that do not answer hold the slots of the quick lane for a moment each, and never all.
const (
	quickBound     = 2 * time.Second
	mostQuick      = 48 // attempts at once
	mostSlow       = 16 // likewise
	quickOfOne     = 4  // those of one project; one, while something of it is slow
	slowOfOne      = 2
	quickOfTheSlow = 1
)

// begin begins attempts, as many as may be at once. A project has its share of them: those whose others wait for an answer
// come after those that have none, and after the same number whoever waits for longest.
func (s *Service) begin(ctx context.Context, running *sync.WaitGroup, due []*store.Webhook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var quick, slow []*store.Webhook
	for _, w := range due {
		if _, ok := s.slow[w.ID]; ok {
			slow = append(slow, w)
		} else {
			quick = append(quick, w)
		}
	}
	suspect := make(map[string]bool)
	for _, project := range s.slow {
		suspect[project] = true
	}
	s.fill(ctx, running, quick, false, mostQuick, func(project string) int {
		if suspect[project] {
			return quickOfTheSlow
		}
		return quickOfOne
	})
	s.fill(ctx, running, slow, true, mostSlow, func(string) int { return slowOfOne })
}

// fill begins attempts in a lane. s.mu is held.
func (s *Service) fill(ctx context.Context, running *sync.WaitGroup, due []*store.Webhook, slow bool, most int, share func(project string) int) {
	n, of := s.inLane(slow)
	due = slices.DeleteFunc(due, func(w *store.Webhook) bool { return of[w.Project] >= share(w.Project) })
	for ; n < most && len(due) > 0; n++ {
		best := 0
		for i, w := range due {
			b := due[best]
			switch n, m := of[w.Project], of[b.Project]; {
			case n != m:
				if n < m {
					best = i
				}
			case w.Project != b.Project:
				if s.turns[w.Project] < s.turns[b.Project] {
					best = i
				}
			case s.turns[w.ID] < s.turns[b.ID]:
				best = i
			}
		}
		w := due[best]
		due = slices.Delete(due, best, best+1)
		of[w.Project]++
		if of[w.Project] >= share(w.Project) {
			due = slices.DeleteFunc(due, func(o *store.Webhook) bool { return o.Project == w.Project })
		}
		s.turn++
		s.turns[w.Project], s.turns[w.ID] = s.turn, s.turn
		s.launch(ctx, running, w, slow)
	}
}

// inLane returns how many attempts of a lane are being made, and of which projects. s.mu is held.
func (s *Service) inLane(slow bool) (n int, of map[string]int) {
	of = make(map[string]int)
	for _, f := range s.flights {
		if f.slow == slow {
			n++
			of[f.project]++
		}
	}
	return n, of
}

// launch begins an attempt. s.mu is held.
func (s *Service) launch(ctx context.Context, running *sync.WaitGroup, w *store.Webhook, slow bool) {
	attempt, cancel := context.WithCancel(ctx)
	f := &flight{project: w.Project, cancel: cancel, slow: slow, done: make(chan struct{})}
	s.flights[w.ID] = f
	running.Go(func() {
		defer cancel()
		s.attempt(attempt, w.ID, f)
		s.mu.Lock()
		delete(s.flights, w.ID)
		if h := s.hooks[w.ID]; h != nil {
			h.look = true
		}
		s.mu.Unlock()
		close(f.done)
		s.changed()
	})
}

// late takes an attempt that has no answer yet out of the quick lane.
func (s *Service) late(id string, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[id] != f || f.stale {
		return // it is over
	}
	s.slow[id] = f.project
	if f.slow {
		return
	}
	if n, of := s.inLane(true); n >= mostSlow || of[f.project] >= slowOfOne {
		f.cancel() // it is made again
		return
	}
	f.slow = true
	s.changed()
}
