// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func eventRecords(t *testing.T, open func(*testing.T) store.Store) {
	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		want := []*sandbox.Event{event(1, "p"), {Sandbox: boxID(1), Project: "default", Type: sandbox.EventStarted}}
		appendEvents(t, s, want...)
		got, _ := listEvents(t, s, store.EventQuery{Oldest: true})
		wantSame(t, "List", got, want)
	})
	t.Run("SeqGrowsByOne", func(t *testing.T) {
		s := open(t)
		a, b := event(1, "a"), event(2, "b")
		appendEvents(t, s, a)
		_ = inUpdate(t, s, func(tx store.Tx) error {
			_ = tx.Events().Append(event(3, "undone"))
			return fault.New(fault.Internal, "no")
		})
		appendEvents(t, s, b)
		if b.Seq <= a.Seq || a.Seq <= 0 {
			t.Errorf("got Seq %d and then %d, want growing numbers above zero", a.Seq, b.Seq)
		}
	})
	t.Run("ConcurrentAppendsAreInOneOrder", func(t *testing.T) {
		s := open(t)
		const workers, rounds = 8, 20
		var mu sync.Mutex
		var given []int64
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				last := int64(0)
				for r := range rounds {
					e := event(w, fmt.Sprint(w, r))
					if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Events().Append(e) }); err != nil {
						t.Errorf("Append: %v", err)
						return
					}
					if e.Seq <= last {
						t.Errorf("Seq %d came after %d", e.Seq, last)
					}
					last = e.Seq
					mu.Lock()
					given = append(given, e.Seq)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		slices.Sort(given)
		page, _ := listEvents(t, s, store.EventQuery{Oldest: true, Limit: store.MaxPage})
		wantSame(t, "the Seqs in the list", seqs(page), given)
		wantSame(t, "how many differ", len(slices.Compact(given)), workers*rounds)
	})
	t.Run("FinishWritesTheResultAndKeepsTheRest", func(t *testing.T) {
		s := open(t)
		first := begun(1, "p")
		appendEvents(t, s, first, event(1, "q"))
		result := event(1, "p")
		result.Command, result.Actor = "something else", "someone else"
		update(t, s, func(tx store.Tx) error { return tx.Events().Finish(result) })
		wantSame(t, "Seq", result.Seq, first.Seq)
		want := event(1, "p")
		want.Seq, want.Path, want.To = first.Seq, "", ""
		got, _ := listEvents(t, s, store.EventQuery{Oldest: true, Limit: 1})
		wantSame(t, "List", got, []*sandbox.Event{want})
	})
	t.Run("AResultIsWrittenOnce", func(t *testing.T) {
		s := open(t)
		finish := func(e *sandbox.Event) error {
			return inUpdate(t, s, func(tx store.Tx) error { return tx.Events().Finish(e) })
		}
		appendEvents(t, s, begun(1, "p"))
		wantCode(t, "Finish of another process", finish(event(1, "q")), fault.NotFound)
		wantCode(t, "Finish in another sandbox", finish(event(2, "p")), fault.NotFound)
		if err := finish(event(1, "p")); err != nil {
			t.Fatalf("Finish: %v", err)
		}
		again := event(1, "p")
		again.ExitCode = 99
		wantCode(t, "Finish again", finish(again), fault.Conflict)
		page, _ := listEvents(t, s, store.EventQuery{})
		wantSame(t, "ExitCode", page[0].ExitCode, event(1, "p").ExitCode)
	})
	t.Run("OfManyResultsOneIsWritten", func(t *testing.T) {
		s := open(t)
		appendEvents(t, s, begun(1, "p"))
		errs := make([]error, 20)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				errs[i] = s.Update(t.Context(), func(tx store.Tx) error { return tx.Events().Finish(event(1, "p")) })
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				wantCode(t, "Finish", err, fault.Conflict)
			}
		}
		wantSame(t, "results written", won, 1)
	})
	t.Run("OfThoseThatRunOneHasAName", func(t *testing.T) {
		s := open(t)
		add := func(e *sandbox.Event) error {
			return inUpdate(t, s, func(tx store.Tx) error { return tx.Events().Append(e) })
		}
		of := func(n int, process, name string) *sandbox.Event {
			e := begun(n, process)
			e.Name = name
			return e
		}
		appendEvents(t, s, of(1, "a", "web"), of(2, "b", "web"), of(1, "c", "WEB"), of(1, "d", ""), of(1, "e", ""))
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = add(of(1, fmt.Sprint("x", i), "web")) })
		}
		wg.Wait()
		for _, err := range errs {
			wantCode(t, "Append with a name that another has", err, fault.Exists)
		}
		update(t, s, func(tx store.Tx) error { return tx.Events().Finish(event(1, "a")) })
		for i := range errs {
			wg.Go(func() { errs[i] = add(of(1, fmt.Sprint("y", i), "web")) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				wantCode(t, "Append beside one", err, fault.Exists)
			}
		}
		wantSame(t, "how many got the name of one that ended", won, 1)
		got, _ := listEvents(t, s, store.EventQuery{Sandbox: boxID(1), Named: true, Name: "web"})
		wantSame(t, "those with the name", len(got), 2)
		got, _ = listEvents(t, s, store.EventQuery{Sandbox: boxID(1), Named: true})
		wantSame(t, "those with a name, labels or a signal", len(got), 5)
	})
	t.Run("SignalNotesByWhomACommandIsSignalled", func(t *testing.T) {
		s := open(t)
		alice, bob := sandbox.Signaled{By: "alice", With: "SIGTERM"}, sandbox.Signaled{By: "bob", With: "SIGKILL"}
		a := begun(1, "a")
		appendEvents(t, s, a, begun(2, "a"))
		signal := func(id sandbox.ID, process string, by sandbox.Signaled) (was sandbox.Signaled, found bool) {
			update(t, s, func(tx store.Tx) (err error) { was, found, err = tx.Events().Signal(id, process, by); return err })
			return was, found
		}
		says := func(id sandbox.ID) sandbox.Signaled {
			got, _ := listEvents(t, s, store.EventQuery{Sandbox: id, ProcessID: "a"})
			return got[0].Signaled
		}
		was, found := signal(boxID(1), "a", alice)
		wantSame(t, "before the first", was, sandbox.Signaled{})
		wantSame(t, "whether there is one", found, true)
		was, _ = signal(boxID(1), "a", bob)
		wantSame(t, "before the second", was, alice)
		wantSame(t, "the row", says(boxID(1)), bob)
		wantSame(t, "that of another sandbox", says(boxID(2)), sandbox.Signaled{})
		got, _ := listEvents(t, s, store.EventQuery{Sandbox: boxID(1), Named: true})
		wantSame(t, "those with a name, labels or a signal", len(got), 1)
		update(t, s, func(tx store.Tx) error { return tx.Events().Finish(event(1, "a")) })
		wantSame(t, "after Finish without one", says(boxID(1)), bob)
		_, found = signal(boxID(1), "a", alice)
		wantSame(t, "whether there is one that has no result", found, false)
		update(t, s, func(tx store.Tx) error { return tx.Events().Unsignal(boxID(1), "a", alice, sandbox.Signaled{}) })
		wantSame(t, "after taking back what it does not say", says(boxID(1)), bob)
		update(t, s, func(tx store.Tx) error { return tx.Events().Unsignal(boxID(1), "a", bob, alice) })
		wantSame(t, "after taking back what it says", says(boxID(1)), alice)
		e := event(2, "a")
		e.Signaled = bob
		update(t, s, func(tx store.Tx) error { return tx.Events().Finish(e) })
		wantSame(t, "after Finish with one", says(boxID(2)), bob)
	})
	t.Run("UnfinishedGivesCommandsWithoutResult", func(t *testing.T) {
		s := open(t)
		stopped := &sandbox.Event{Sandbox: boxID(1), Project: "default", Type: sandbox.EventStopped, At: epoch}
		a, b, c, d := begun(1, "a"), begun(2, "b"), begun(1, "c"), event(1, "d")
		appendEvents(t, s, a, b, stopped, c, d)
		unfinished := func(id sandbox.ID) (got []*sandbox.Event) {
			view(t, s, func(tx store.Tx) (err error) { got, err = tx.Events().Unfinished(id); return err })
			return got
		}
		wantSame(t, "of one", unfinished(boxID(1)), []*sandbox.Event{a, c})
		wantSame(t, "of all", unfinished(""), []*sandbox.Event{a, b, c})
		wantSame(t, "of none", len(unfinished("nothing")), 0)
		update(t, s, func(tx store.Tx) error { return tx.Events().Finish(event(1, "a")) })
		wantSame(t, "after Finish", unfinished(boxID(1)), []*sandbox.Event{c})
	})
}

func eventLists(t *testing.T, open func(*testing.T) store.Store) {
	t.Run("Filters", func(t *testing.T) {
		s := open(t)
		var all []*sandbox.Event
		add := func(change func(*sandbox.Event)) {
			e := event(1, "p")
			e.At = epoch.Add(time.Duration(len(all)) * time.Minute)
			change(e)
			all = append(all, e)
		}
		add(func(e *sandbox.Event) {})
		add(func(e *sandbox.Event) { e.Sandbox = boxID(2) })
		add(func(e *sandbox.Event) { e.Project = "other" })
		add(func(e *sandbox.Event) { e.ProcessID = "q" })
		add(func(e *sandbox.Event) { e.Type, e.ProcessID = sandbox.EventUpload, "" })
		add(func(e *sandbox.Event) { e.Type, e.ProcessID = sandbox.EventDeleted, "" })
		appendEvents(t, s, all...)
		first := all[0].Seq
		for _, c := range []struct {
			name string
			q    store.EventQuery
			want []int64
		}{
			{"Nothing", store.EventQuery{}, []int64{5, 4, 3, 2, 1, 0}},
			{"Oldest", store.EventQuery{Oldest: true}, []int64{0, 1, 2, 3, 4, 5}},
			{"Sandbox", store.EventQuery{Sandbox: boxID(2)}, []int64{1}},
			{"Project", store.EventQuery{Project: "other"}, []int64{2}},
			{"SandboxOfAnotherProject", store.EventQuery{Project: "other", Sandbox: boxID(2)}, nil},
			{"Process", store.EventQuery{ProcessID: "q"}, []int64{3}},
			{"ProcessAndSandbox", store.EventQuery{ProcessID: "p", Sandbox: boxID(2), Project: "default"}, []int64{1}},
			{"Type", store.EventQuery{Types: []sandbox.EventType{sandbox.EventUpload}}, []int64{4}},
			{"Types", store.EventQuery{Types: []sandbox.EventType{sandbox.EventUpload, sandbox.EventDeleted}}, []int64{5, 4}},
			{"SinceIsIncluded", store.EventQuery{Since: all[4].At}, []int64{5, 4}},
			{"UntilIsIncluded", store.EventQuery{Until: all[1].At}, []int64{1, 0}},
			{"SinceAndUntil", store.EventQuery{Since: all[2].At, Until: all[3].At, Oldest: true}, []int64{2, 3}},
			{"AfterIsOldestFirst", store.EventQuery{After: first + 3}, []int64{4, 5}},
			{"AfterTheEnd", store.EventQuery{After: first + 5}, nil},
			{"AfterInASandbox", store.EventQuery{After: first, Sandbox: boxID(1), Project: "default"}, []int64{3, 4, 5}},
		} {
			t.Run(c.name, func(t *testing.T) {
				want := []int64{}
				for _, n := range c.want {
					want = append(want, first+n)
				}
				page, _ := listEvents(t, s, c.q)
				wantSame(t, "List", seqs(page), want)
			})
		}
	})
	for name, q := range map[string]store.EventQuery{
		"Newest": {Sandbox: boxID(1)}, "Oldest": {Project: "default", Oldest: true}, "After": {After: 1}, "All": {},
	} {
		t.Run("PagesHaveNoGapAndNoDoubleWhileRowsCome/"+name, func(t *testing.T) {
			s := open(t)
			var before []int64
			for range 31 {
				e := event(1, "p")
				appendEvents(t, s, e)
				if e.Seq > q.After {
					before = append(before, e.Seq)
				}
			}
			q := q
			q.Limit = 4
			var seen []int64
			for rounds := 0; ; rounds++ {
				page, next := listEvents(t, s, q)
				seen = append(seen, seqs(page)...)
				if next == "" {
					break
				}
				if q.Cursor = next; rounds < 10 {
					appendEvents(t, s, event(1, "new"))
				}
			}
			if !q.Oldest && q.After == 0 {
				slices.Reverse(seen)
				wantSame(t, "the rows of before", seen, before)
				return
			}
			wantSame(t, "the rows of before", seen[:len(before)], before)
			if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != len(seen) {
				t.Errorf("got %v, want growing numbers", seen)
			}
		})
	}
}
