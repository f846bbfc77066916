// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sandpit.dev/engine/events"
	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// round makes deliveries of new events and begins attempts that are due. It returns when to look again, and whether there
// is a webhook that is switched on.
func (s *Service) round(ctx context.Context, running *sync.WaitGroup) (next time.Duration, any bool, err error) {
	if err := s.load(ctx); err != nil {
		return 0, false, err
	}
	for more := true; more; {
		if more, err = s.fan(ctx); err != nil {
			return 0, false, err
		}
	}
	if err := s.readDue(ctx); err != nil {
		return 0, false, err
	}
	next = longest
	all := s.enabled()
	var due []*store.Webhook
	s.mu.Lock()
	now := s.now()
	for _, h := range all {
		if s.flights[h.w.ID] != nil || h.due.IsZero() {
			continue
		}
		at := h.due
		if wait := s.waits[h.w.ID]; wait.After(at) {
			at = wait
		}
		if left := at.Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		due = append(due, h.w)
	}
	s.mu.Unlock()
	s.begin(ctx, running, due)
	return next, len(all) > 0, nil
}

// fan makes the deliveries of some events, and moves the webhooks behind them. It returns whether there are more events.
func (s *Service) fan(ctx context.Context) (more bool, err error) {
	all := s.enabled()
	if len(all) == 0 {
		return false, nil
	}
	least := all[0].seen
	for _, h := range all {
		least = min(least, h.seen)
	}
	var rows []*store.Change
	var newest int64
	from := least
	err = s.store.View(ctx, func(tx store.Tx) error {
		var oldest int64
		if oldest, newest, err = tx.Changes().Bounds(); err != nil || least >= newest {
			return err
		}
		if least < oldest-1 {
			s.logger.Error("events were deleted before they were sent to webhooks", "from", least, "to", oldest)
			least = oldest - 1
		}
		rows, err = tx.Changes().List(least, page)
		return err
	})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	// A change that was answered before one of these events is known now.
	if err := s.load(ctx); err != nil {
		return false, err
	}
	last := rows[len(rows)-1].Seq
	more = last < newest
	var write []string
	s.mu.Lock()
	for id, h := range s.hooks {
		switch {
		case !h.w.DisabledAt.IsZero() || h.seen >= last:
		case h.seen < from: // switched on meanwhile: its own are read next
			more = true
		case len(s.wanted(h.w, h.seen, rows)) > 0 || last-h.w.Position >= mostBehind:
			write = append(write, id)
		default:
			h.seen = last
		}
	}
	s.mu.Unlock()
	if len(write) == 0 {
		return more, nil
	}
	var written []*store.Webhook
	err = s.store.Update(ctx, func(tx store.Tx) error {
		written = written[:0]
		for _, id := range write {
			w, err := tx.Webhooks().Get(id)
			if fault.Is(err, fault.NotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if !w.DisabledAt.IsZero() || w.Position >= last {
				continue
			}
			if err := s.deliver(tx, w, max(w.Position, s.seen(id)), rows); err != nil {
				return err
			}
			written = append(written, w)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, w := range written {
		s.note(w.ID, w)
	}
	return more, nil
}

// told is an event with the type that a webhook has for it.
type told struct {
	*events.Event
	typ string
}

// wanted returns the events behind one that a webhook is sent.
func (s *Service) wanted(w *store.Webhook, behind int64, rows []*store.Change) (all []told) {
	for _, c := range rows {
		if c.Seq <= behind || c.Project != "" && c.Project != w.Project {
			continue
		}
		e := events.Of(c)
		if typ := s.typeOf(w, e); typ != "" {
			all = append(all, told{e, typ})
		}
	}
	return all
}

// deliver makes the deliveries of a webhook.
func (s *Service) deliver(tx store.Tx, w *store.Webhook, behind int64, rows []*store.Change) error {
	at := s.now()
	all := s.wanted(w, behind, rows)
	for _, e := range all {
		if err := tx.Webhooks().Add(&store.Delivery{
			ID: "del_" + random(), Webhook: w.ID, EventID: e.ID, Type: e.typ, Body: s.bodyOf(w, e.Event, e.typ), State: store.DeliveryPending, NextAt: at, CreatedAt: at,
		}); err != nil {
			return err
		}
	}
	w.Position = rows[len(rows)-1].Seq
	if len(all) > 0 {
		n, err := tx.Webhooks().Pending(w.ID)
		if err != nil {
			return err
		}
		if n > mostPending {
			w.DisabledAt, w.DisabledBy, w.Detail = at, "system", fmt.Sprintf("%d deliveries wait, more than %d: it takes them too slowly", n, mostPending)
		}
	}
	return tx.Webhooks().Update(w)
}
