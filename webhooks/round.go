// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sandpit.dev/engine/events"
	"sandpit.dev/store"
)

// round makes deliveries of new events and begins attempts that are due. It returns when to look again, and whether there
// is a webhook that is switched on.
func (s *Service) round(ctx context.Context, running *sync.WaitGroup) (next time.Duration, any bool, err error) {
	var all []*store.Webhook
	for more := true; more; {
		all, more, err = s.fan(ctx)
		if err != nil {
			return 0, false, err
		}
	}
	s.forget(all)
	next = longest
	var due []*store.Webhook
	err = s.store.View(ctx, func(tx store.Tx) error {
		for _, w := range all {
			if !w.DisabledAt.IsZero() {
				continue
			}
			any = true
			s.mu.Lock()
			_, busy := s.flights[w.ID]
			at := s.waits[w.ID]
			s.mu.Unlock()
			if busy {
				continue
			}
			d, err := tx.Webhooks().Due(w.ID)
			if err != nil {
				return err
			}
			if d == nil {
				continue
			}
			if d.NextAt.After(at) {
				at = d.NextAt
			}
			if left := at.Sub(s.now()); left > 0 {
				next = min(next, left)
				continue
			}
			due = append(due, w)
		}
		return nil
	})
	if err == nil {
		s.begin(ctx, running, due)
	}
	return next, any, err
}

// forget drops what is known of webhooks that are gone.
func (s *Service) forget(all []*store.Webhook) {
	there := make(map[string]bool, 2*len(all))
	for _, w := range all {
		there[w.ID], there[w.Project] = true, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.waits, func(id string, _ time.Time) bool { return !there[id] })
	maps.DeleteFunc(s.turns, func(id string, _ uint64) bool { return !there[id] })
}

// begin begins attempts, as many as may be at once. A project has its share of them: those whose others wait for an answer
// come after those that have none, and after the same number whoever waits for longest.
func (s *Service) begin(ctx context.Context, running *sync.WaitGroup, due []*store.Webhook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := make(map[string]int)
	for _, f := range s.flights {
		of[f.project]++
	}
	for len(s.flights) < mostAtOnce && len(due) > 0 {
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
		if of[w.Project] >= mostOfProject {
			return // of every one's that is due
		}
		due = slices.Delete(due, best, best+1)
		of[w.Project]++
		s.turn++
		s.turns[w.Project], s.turns[w.ID] = s.turn, s.turn
		attempt, cancel := context.WithCancel(ctx)
		f := &flight{project: w.Project, cancel: cancel, done: make(chan struct{})}
		s.flights[w.ID] = f
		running.Go(func() {
			defer cancel()
			s.attempt(attempt, w.ID, f)
			s.mu.Lock()
			delete(s.flights, w.ID)
			s.mu.Unlock()
			close(f.done)
			s.changed()
		})
	}
}

// fan makes the deliveries of some events, and moves the webhooks behind them. It returns all webhooks, and whether there
// are more events.
func (s *Service) fan(ctx context.Context) (all []*store.Webhook, more bool, err error) {
	behind := func(tx store.Tx) (least, oldest, newest int64, err error) {
		if all, err = tx.Webhooks().List(""); err != nil {
			return 0, 0, 0, err
		}
		oldest, newest, err = tx.Changes().Bounds()
		least = newest
		for _, w := range all {
			if w.DisabledAt.IsZero() {
				least = min(least, w.Position)
			}
		}
		return least, oldest, newest, err
	}
	var idle bool
	err = s.store.View(ctx, func(tx store.Tx) error {
		least, _, newest, err := behind(tx)
		idle = least >= newest
		return err
	})
	if err != nil || idle {
		return all, false, err
	}
	err = s.store.Update(ctx, func(tx store.Tx) error {
		least, oldest, newest, err := behind(tx)
		if err != nil {
			return err
		}
		if least < oldest-1 {
			s.logger.Error("events were deleted before they were sent to webhooks", "from", least, "to", oldest)
			least = oldest - 1
		}
		rows, err := tx.Changes().List(least, page)
		if err != nil || len(rows) == 0 {
			return err
		}
		last := rows[len(rows)-1].Seq
		more = last < newest
		for _, w := range all {
			if w.DisabledAt.IsZero() && w.Position < last {
				if err := s.deliver(tx, w, rows); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return all, more, err
}

// deliver makes the deliveries of a webhook.
func (s *Service) deliver(tx store.Tx, w *store.Webhook, rows []*store.Change) error {
	at := s.now()
	for _, c := range rows {
		e := events.Of(c)
		if c.Seq <= w.Position || !e.Matches(w.Project, w.Types) {
			continue
		}
		if err := tx.Webhooks().Add(&store.Delivery{
			ID: "del_" + random(), Webhook: w.ID, EventID: e.ID, Type: e.Type, Body: s.body(e), State: store.DeliveryPending, NextAt: at, CreatedAt: at,
		}); err != nil {
			return err
		}
	}
	w.Position = rows[len(rows)-1].Seq
	n, err := tx.Webhooks().Pending(w.ID)
	if err != nil {
		return err
	}
	if n > mostPending {
		w.DisabledAt, w.DisabledBy, w.Detail = at, "system", fmt.Sprintf("%d deliveries wait, more than %d: it takes them too slowly", n, mostPending)
	}
	return tx.Webhooks().Update(w)
}
