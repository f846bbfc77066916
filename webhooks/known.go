// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"sandpit.dev/store"
)

// hook is what is known in memory of a webhook, so that a commit of an event, or an answer, reads no record of others.
type hook struct {
	w    *store.Webhook // not changed
	seen int64          // the Seq up to which events were looked at for it: its record's Position, or a later one
	look bool           // what is due is to be read
	due  time.Time      // when its first delivery is due; zero: it has none
}

// mostBehind is how many events a record's Position may be behind what was looked at: by what has no event for the webhook
// nothing is written.
const mostBehind = 1024

// invalidate has the webhooks read again before another event is looked at. It is called after each commit that changes one.
func (s *Service) invalidate() {
	s.mu.Lock()
	s.stale = true
	s.mu.Unlock()
	s.changed()
}

// load reads the webhooks, where they may be others than those that are known.
func (s *Service) load(ctx context.Context) error {
	s.mu.Lock()
	stale := s.stale
	s.stale = false // what is committed from here on says so again
	s.mu.Unlock()
	if !stale {
		return nil
	}
	var all []*store.Webhook
	err := s.store.View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Webhooks().List("")
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.stale = true
		return err
	}
	s.loads++
	known := make(map[string]*hook, len(all))
	projects := make(map[string]bool)
	for _, w := range all {
		h := &hook{w: w, seen: w.Position, look: true}
		if old := s.hooks[w.ID]; old != nil {
			h.seen = max(h.seen, old.seen)
		}
		known[w.ID], projects[w.Project] = h, true
	}
	s.hooks = known
	gone := func(id string) bool { return known[id] == nil }
	maps.DeleteFunc(s.waits, func(id string, _ time.Time) bool { return gone(id) })
	maps.DeleteFunc(s.slow, func(id, _ string) bool { return gone(id) })
	maps.DeleteFunc(s.turns, func(id string, _ uint64) bool { return gone(id) && !projects[id] })
	return nil
}

// note takes over what was committed of a webhook, unless it was changed after that. What is due of it is read again.
func (s *Service) note(id string, w *store.Webhook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hooks[id]; h != nil {
		if h.look = true; !w.UpdatedAt.Before(h.w.UpdatedAt) {
			h.w, h.seen = w, max(h.seen, w.Position)
		}
	}
}

// seen returns the Seq up to which events were looked at for a webhook; 0: not known.
func (s *Service) seen(id string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hooks[id]; h != nil {
		return h.seen
	}
	return 0
}

// enabled returns copies of what is known of webhooks that are switched on, oldest first.
func (s *Service) enabled() (all []hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hooks {
		if h.w.DisabledAt.IsZero() {
			all = append(all, *h)
		}
	}
	slices.SortFunc(all, func(a, b hook) int {
		if c := a.w.CreatedAt.Compare(b.w.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.w.ID, b.w.ID)
	})
	return all
}

// readDue reads when the first deliveries of webhooks are due, where that may have changed.
func (s *Service) readDue(ctx context.Context) error {
	s.mu.Lock()
	var ask []string
	for id, h := range s.hooks {
		if h.look && h.w.DisabledAt.IsZero() {
			ask, h.look = append(ask, id), false // what is committed from here on says so again
		}
	}
	s.mu.Unlock()
	if len(ask) == 0 {
		return nil
	}
	due := make(map[string]time.Time, len(ask))
	err := s.store.View(ctx, func(tx store.Tx) error {
		for _, id := range ask {
			d, err := tx.Webhooks().Due(id)
			if err != nil {
				return err
			}
			if due[id] = (time.Time{}); d != nil {
				due[id] = d.NextAt
			}
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ask {
		if h := s.hooks[id]; h != nil {
			if h.due = due[id]; err != nil {
				h.look = true
			}
		}
	}
	return err
}
