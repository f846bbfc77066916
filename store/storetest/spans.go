// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// spread is a sandbox whose figures differ from those of its neighbours, with some that are the same.
func spread(n int) *sandbox.Sandbox {
	b := box(n)
	b.CreatedAt = epoch.Add(time.Duration(n) * time.Minute)
	b.LastActivity = epoch.Add(time.Duration(n*7%11) * time.Hour)
	b.ExpiresAt = epoch.Add(time.Duration(n*5%7) * time.Hour)
	if n%4 == 0 {
		b.ExpiresAt = time.Time{}
	}
	b.Limits.CPU, b.Limits.MemoryMB, b.Limits.DiskMB = 0.1+float64(n%3)*0.7, 256*(1+n%5), 1024*(1+n%2)
	return b
}

func figure(by store.SandboxSort, s *sandbox.Sandbox) float64 {
	switch by {
	case store.SortActivity:
		return float64(s.LastActivity.UnixMicro())
	case store.SortExpiry:
		if s.ExpiresAt.IsZero() {
			return math.Inf(1)
		}
		return float64(s.ExpiresAt.UnixMicro())
	case store.SortCPU:
		return s.Limits.CPU
	case store.SortMemory:
		return float64(s.Limits.MemoryMB)
	case store.SortDisk:
		return float64(s.Limits.DiskMB)
	}
	return float64(s.CreatedAt.UnixMicro())
}

func sandboxSpans(t *testing.T, open func(*testing.T) store.Store) {
	const n = 23
	t.Run("SortsAndCursorsSurviveInserts", func(t *testing.T) {
		for _, by := range append(store.SandboxSorts(), "") {
			for _, oldest := range []bool{false, true} {
				s := open(t)
				var all []*sandbox.Sandbox
				for i := range n {
					all = append(all, spread(i))
				}
				insert(t, s, all...)
				slices.SortFunc(all, func(a, b *sandbox.Sandbox) int {
					c := cmp.Or(cmp.Compare(figure(by, a), figure(by, b)), cmp.Compare(a.ID, b.ID))
					if !oldest {
						c = -c
					}
					return c
				})
				var want, got []sandbox.ID
				for _, b := range all {
					want = append(want, b.ID)
				}
				q := store.SandboxQuery{Sort: by, Oldest: oldest, Limit: 4}
				for page := 0; ; page++ {
					var items []*sandbox.Sandbox
					view(t, s, func(tx store.Tx) (err error) { items, q.Cursor, err = tx.Sandboxes().List(q); return err })
					for _, b := range items {
						if slices.Contains(want, b.ID) { // else it was inserted on the way
							got = append(got, b.ID)
						}
					}
					if q.Cursor == "" {
						break
					}
					insert(t, s, spread(100+page)) // before the page, or behind it
				}
				if !slices.Equal(got, want) {
					t.Errorf("by %q, oldest %v: got %v, want %v", by, oldest, got, want)
				}
			}
		}
	})
	t.Run("ACursorOfAnotherSortIsRefused", func(t *testing.T) {
		s := open(t)
		insert(t, s, spread(1), spread(2))
		var cursor string
		view(t, s, func(tx store.Tx) (err error) {
			_, cursor, err = tx.Sandboxes().List(store.SandboxQuery{Sort: store.SortDisk, Limit: 1})
			return err
		})
		err := s.View(t.Context(), func(tx store.Tx) error {
			_, _, err := tx.Sandboxes().List(store.SandboxQuery{Sort: store.SortMemory, Cursor: cursor})
			return err
		})
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("Spans", func(t *testing.T) {
		s := open(t)
		var all []*sandbox.Sandbox
		for i := range n {
			all = append(all, spread(i))
		}
		insert(t, s, all...)
		hour := func(h int) time.Time { return epoch.Add(time.Duration(h) * time.Hour) }
		for name, c := range map[string]struct {
			spans store.SandboxSpans
			fits  func(*sandbox.Sandbox) bool
		}{
			"Created": {store.SandboxSpans{Created: store.TimeSpan{From: all[3].CreatedAt, To: all[7].CreatedAt}}, func(b *sandbox.Sandbox) bool {
				return !b.CreatedAt.Before(all[3].CreatedAt) && !b.CreatedAt.After(all[7].CreatedAt)
			}},
			"ActiveFrom":  {store.SandboxSpans{Active: store.TimeSpan{From: hour(5)}}, func(b *sandbox.Sandbox) bool { return !b.LastActivity.Before(hour(5)) }},
			"ExpiresTo":   {store.SandboxSpans{Expires: store.TimeSpan{To: hour(3)}}, func(b *sandbox.Sandbox) bool { return !b.ExpiresAt.IsZero() && !b.ExpiresAt.After(hour(3)) }},
			"ExpiresFrom": {store.SandboxSpans{Expires: store.TimeSpan{From: hour(3)}}, func(b *sandbox.Sandbox) bool { return !b.ExpiresAt.Before(hour(3)) }},
			"CPU":         {store.SandboxSpans{CPU: store.AmountSpan{From: all[1].Limits.CPU, To: all[1].Limits.CPU}}, func(b *sandbox.Sandbox) bool { return b.Limits.CPU == all[1].Limits.CPU }},
			"MemoryAndDisk": {store.SandboxSpans{MemoryMB: store.AmountSpan{From: 512}, DiskMB: store.AmountSpan{To: 1024}}, func(b *sandbox.Sandbox) bool {
				return b.Limits.MemoryMB >= 512 && b.Limits.DiskMB <= 1024
			}},
		} {
			want := 0
			for _, b := range all {
				if c.fits(b) {
					want++
				}
			}
			var items []*sandbox.Sandbox
			var counts map[sandbox.State]int
			view(t, s, func(tx store.Tx) (err error) {
				q := store.SandboxQuery{SandboxSpans: c.spans, Limit: store.MaxPage}
				if items, _, err = tx.Sandboxes().List(q); err == nil {
					counts, err = tx.Sandboxes().Count(q)
				}
				return err
			})
			for _, b := range items {
				if !c.fits(b) {
					t.Errorf("%s: got %+v", name, b)
				}
			}
			if len(items) != want || counts[sandbox.Stopped] != want || want == 0 || want == n {
				t.Errorf("%s: got %d of %d, counted %v", name, len(items), want, counts)
			}
		}
	})
	t.Run("Touch", func(t *testing.T) {
		s := open(t)
		insert(t, s, spread(1))
		was := spread(1).LastActivity
		for _, c := range []struct{ at, want time.Time }{{was.Add(-time.Hour), was}, {was.Add(time.Hour), was.Add(time.Hour)}} {
			var got *sandbox.Sandbox
			update(t, s, func(tx store.Tx) (err error) {
				if err = tx.Sandboxes().Touch(boxID(1), c.at); err == nil {
					got, err = tx.Sandboxes().Get(boxID(1))
				}
				return err
			})
			if !got.LastActivity.Equal(c.want) || got.Revision != 1 {
				t.Errorf("got %v at revision %d, want %v", got.LastActivity, got.Revision, c.want)
			}
		}
	})
}
