// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// aged is a row of an event that happened so many days after the epoch.
func aged(n, days int, kind sandbox.EventType, process string) *sandbox.Event {
	e := event(n, process)
	e.Type, e.At = kind, epoch.Add(time.Duration(days)*24*time.Hour)
	return e
}

func eventRetention(t *testing.T, open func(*testing.T) store.Store) {
	day := func(n int) time.Time { return epoch.Add(time.Duration(n) * 24 * time.Hour) }
	prune := func(t *testing.T, s store.Store, q store.EventPrune) (deleted int) {
		t.Helper()
		for {
			update(t, s, func(tx store.Tx) error {
				n, last, err := tx.Events().Prune(q)
				if n > q.Limit {
					t.Errorf("%d of %d events looked at were deleted", n, q.Limit)
				}
				deleted, q.After = deleted+n, last
				return err
			})
			if q.After == 0 {
				return deleted
			}
		}
	}
	left := func(t *testing.T, s store.Store) []int64 {
		t.Helper()
		page, _ := listEvents(t, s, store.EventQuery{Oldest: true, Limit: store.MaxPage})
		return seqs(page)
	}
	t.Run("WhatIsTooOldGoesInBatches", func(t *testing.T) {
		s := open(t)
		var want []int64
		for n := range 40 {
			e := aged(n, n, sandbox.EventExec, "p")
			appendEvents(t, s, e)
			if n >= 25 {
				want = append(want, e.Seq)
			}
		}
		wantSame(t, "deleted", prune(t, s, store.EventPrune{Before: day(25), Limit: 7}), 25)
		wantSame(t, "what is left", left(t, s), want)
		wantSame(t, "deleted again", prune(t, s, store.EventPrune{Before: day(25), Limit: 7}), 0)
	})
	t.Run("WhatIsStillNeededStays", func(t *testing.T) {
		s := open(t)
		r := live(1)
		r.Commands[0].ProcessID, r.Commands[1].ProcessID = "of-a-live-run", ""
		over := run(2)
		over.Commands[0].ProcessID = "of-a-run-that-ended"
		update(t, s, func(tx store.Tx) error {
			if err := tx.Runs().Insert(r); err != nil {
				return err
			}
			return tx.Runs().Insert(over)
		})
		unfinished := begun(1, "runs")
		unfinished.At = day(0)
		keep := []*sandbox.Event{unfinished, aged(1, 0, sandbox.EventExec, "of-a-live-run"), aged(2, 0, sandbox.EventPrepared, "")}
		gone := []*sandbox.Event{
			aged(1, 0, sandbox.EventExec, "of-a-run-that-ended"), aged(3, 0, sandbox.EventPrepared, ""), aged(1, 0, sandbox.EventDeleted, ""), aged(1, 0, sandbox.EventExec, ""),
		}
		last := aged(1, 0, sandbox.EventExec, "the newest of all")
		appendEvents(t, s, slices.Concat(keep, gone, []*sandbox.Event{last})...)
		spare := func(id sandbox.ID) bool { return id == boxID(2) }
		wantSame(t, "deleted", prune(t, s, store.EventPrune{Before: day(1), Recent: day(1), Spare: spare, Limit: 100}), len(gone))
		wantSame(t, "what is left", left(t, s), seqs(append(keep, last)))
		next := event(1, "next")
		appendEvents(t, s, next)
		if next.Seq <= last.Seq {
			t.Errorf("got the Seq %d after %d, which was given already", next.Seq, last.Seq)
		}
		update(t, s, func(tx store.Tx) error { return tx.Events().Finish(event(1, "runs")) })
	})
	t.Run("AProjectThatHasTooManyLosesItsOldest", func(t *testing.T) {
		s := open(t)
		var mine, others []int64
		for n := range 30 {
			e := aged(1, n, sandbox.EventExec, "p")
			o := aged(2, n, sandbox.EventExec, "p")
			o.Project = "other"
			appendEvents(t, s, e)
			mine = append(mine, e.Seq)
			if n < 10 {
				appendEvents(t, s, o)
				others = append(others, o.Seq)
			}
		}
		var surplus map[string]int64
		view(t, s, func(tx store.Tx) (err error) { surplus, err = tx.Events().Surplus(10); return err })
		wantSame(t, "Surplus", surplus, map[string]int64{"default": mine[19]})
		wantSame(t, "deleted", prune(t, s, store.EventPrune{Project: "default", Upto: surplus["default"], Limit: 3}), 20)
		want := slices.Concat(mine[20:], others)
		slices.Sort(want)
		wantSame(t, "what is left", left(t, s), want)
		view(t, s, func(tx store.Tx) (err error) { surplus, err = tx.Events().Surplus(10); return err })
		wantSame(t, "Surplus afterwards", surplus, map[string]int64{})
	})
	t.Run("HoweverManyThereAreWhatTellsWhoseAThingIsStaysForAWhile", func(t *testing.T) {
		s := open(t)
		var keep []*sandbox.Event
		for _, kind := range sandbox.OwningEvents() {
			e := aged(1, 2, kind, "")
			keep = append(keep, e)
			appendEvents(t, s, aged(1, 0, kind, ""), e, aged(1, 2, sandbox.EventExec, "p"))
		}
		last := event(1, "last")
		appendEvents(t, s, last)
		prune(t, s, store.EventPrune{Project: "default", Upto: last.Seq, Recent: day(1), Limit: 4})
		wantSame(t, "what is left", left(t, s), seqs(append(keep, last)))
	})
	t.Run("ABatchHasABound", func(t *testing.T) {
		s := open(t)
		for _, limit := range []int{0, -1, store.MaxPage + 1} {
			err := inUpdate(t, s, func(tx store.Tx) error {
				_, _, err := tx.Events().Prune(store.EventPrune{Before: day(1), Limit: limit})
				return err
			})
			wantCode(t, "Prune", err, fault.Invalid)
		}
	})
}
