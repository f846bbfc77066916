// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func sandboxLists(t *testing.T, open func(*testing.T) store.Store) {
	sandboxSpans(t, open)
	t.Run("Filters", func(t *testing.T) {
		s := open(t)
		odd := func(n int, change func(*sandbox.Sandbox)) *sandbox.Sandbox {
			b := box(n)
			change(b)
			return b
		}
		insert(t, s,
			box(1),
			odd(2, func(b *sandbox.Sandbox) { b.Project = "other" }),
			odd(3, func(b *sandbox.Sandbox) { b.State = sandbox.Running }),
			odd(4, func(b *sandbox.Sandbox) { b.Image = "Node-22" }),
			odd(5, func(b *sandbox.Sandbox) { b.Key = "100%_Übung" }),
			odd(6, func(b *sandbox.Sandbox) { b.Key = "1000_Übung" }),
			odd(7, func(b *sandbox.Sandbox) { b.Metadata = map[string]string{"owner": "bob", "a": `x","owner":"alice`} }),
			odd(8, func(b *sandbox.Sandbox) { b.Metadata = map[string]string{`x"owner`: "alice", "": "alice"} }),
			odd(9, func(b *sandbox.Sandbox) { b.Metadata = nil; b.Key = "" }),
		)
		alice := map[string]string{"owner": "alice"}
		for _, c := range []struct {
			name string
			q    store.SandboxQuery
			want []int
		}{
			{"Nothing", store.SandboxQuery{}, []int{9, 8, 7, 6, 5, 4, 3, 2, 1}},
			{"Oldest", store.SandboxQuery{Oldest: true}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
			{"Project", store.SandboxQuery{Project: "other"}, []int{2}},
			{"NoSuchProject", store.SandboxQuery{Project: "' OR 1=1 --"}, nil},
			{"State", store.SandboxQuery{States: []sandbox.State{sandbox.Running}}, []int{3}},
			{"Stopped", store.SandboxQuery{States: []sandbox.State{sandbox.Stopped}}, []int{9, 8, 7, 6, 5, 4, 2, 1}},
			{"NotStopped", store.SandboxQuery{Project: "default", States: []sandbox.State{sandbox.Running, sandbox.Paused}}, []int{3}},
			{"NoSuchState", store.SandboxQuery{States: []sandbox.State{"' OR 1=1 --"}}, nil},
			{"StateAndSearch", store.SandboxQuery{States: []sandbox.State{sandbox.Stopped}, Search: "KEY-1"}, []int{1}},
			{"States", store.SandboxQuery{Project: "other", States: []sandbox.State{sandbox.Running, sandbox.Stopped}}, []int{2}},
			{"Image", store.SandboxQuery{Image: "Node-22"}, []int{4}},
			{"ImageDigest", store.SandboxQuery{ImageDigest: "sha256:d", Image: "Node-22"}, []int{4}},
			{"AnotherImageDigest", store.SandboxQuery{ImageDigest: "sha256:e"}, nil},
			{"ImageIsExact", store.SandboxQuery{Image: "node-22"}, nil},
			{"SearchKey", store.SandboxQuery{Search: "KEY-1"}, []int{1}},
			{"SearchID", store.SandboxQuery{Search: strings.ToUpper(string(boxID(9)))}, []int{9}},
			{"SearchImage", store.SandboxQuery{Search: "oDe-2"}, []int{4}},
			{"ImagePart", store.SandboxQuery{ImagePart: "oDe-2"}, []int{4}},
			{"NamePartOfTheKey", store.SandboxQuery{NamePart: "KEY-1"}, []int{1}},
			{"NamePartIsNotOfTheImage", store.SandboxQuery{NamePart: "oDe-2"}, nil},
			{"NamePartOfTheID", store.SandboxQuery{NamePart: strings.ToUpper(string(boxID(9)))}, []int{9}},
			{"ImagePartIsNotOfTheKey", store.SandboxQuery{ImagePart: "KEY-1"}, nil},
			{"SearchFoldsEveryAlphabet", store.SandboxQuery{Search: "üBUNG"}, []int{6, 5}},
			{"SearchPercentIsLiteral", store.SandboxQuery{Search: "%"}, []int{5}},
			{"SearchUnderscoreIsLiteral", store.SandboxQuery{Search: "00_"}, []int{6}},
			{"SearchBackslashIsLiteral", store.SandboxQuery{Search: `\`}, nil},
			{"SearchQuote", store.SandboxQuery{Search: `'"`}, nil},
			{"SearchNUL", store.SandboxQuery{Search: "\x00"}, nil},
			{"SearchNeverSpansTwoFields", store.SandboxQuery{Search: "\nkey"}, nil},
			{"Label", store.SandboxQuery{Metadata: alice}, []int{6, 5, 4, 3, 2, 1}},
			{"Labels", store.SandboxQuery{Metadata: map[string]string{"owner": "alice", "n": "3"}}, []int{3}},
			{"LabelIsExact", store.SandboxQuery{Metadata: map[string]string{"owner": "ali"}}, nil},
			{"EmptyLabel", store.SandboxQuery{Metadata: map[string]string{"": "alice"}}, []int{8}},
			{"HostileLabel", store.SandboxQuery{Metadata: map[string]string{`x"owner`: "alice"}}, []int{8}},
			{"All", store.SandboxQuery{Project: "default", States: []sandbox.State{sandbox.Running}, Image: "python", Search: "key", Metadata: alice}, []int{3}},
			{"Offset", store.SandboxQuery{Offset: 2, Limit: 3}, []int{7, 6, 5}},
			{"OffsetPastTheEnd", store.SandboxQuery{Offset: 100}, nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				want := []sandbox.ID{}
				for _, n := range c.want {
					want = append(want, boxID(n))
				}
				page, _ := list(t, s, c.q)
				wantSame(t, "List", ids(page), want)
				if c.q.Offset > 0 {
					return
				}
				total := 0
				view(t, s, func(tx store.Tx) error {
					counts, err := tx.Sandboxes().Count(c.q)
					for _, n := range counts {
						total += n
					}
					return err
				})
				wantSame(t, "the sum of Count", total, len(want))
			})
		}
		view(t, s, func(tx store.Tx) error {
			counts, err := tx.Sandboxes().Count(store.SandboxQuery{Project: "default", Limit: 1})
			wantSame(t, "Count", counts, map[sandbox.State]int{sandbox.Stopped: 7, sandbox.Running: 1})
			return err
		})
	})

	t.Run("Retain", func(t *testing.T) {
		s := open(t)
		for n, byDefault := range []bool{true, false, true} {
			b := box(n + 1)
			b.Key, b.Retention, b.RetentionDefault = "", time.Duration(n+1)*time.Hour, byDefault
			insert(t, s, b)
		}
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Retain(3 * time.Hour) })
		view(t, s, func(tx store.Tx) error {
			for n, want := range []time.Duration{3 * time.Hour, 2 * time.Hour, 3 * time.Hour} {
				b, err := tx.Sandboxes().Get(boxID(n + 1))
				if err != nil {
					return err
				}
				if b.Retention != want || b.RetentionDefault != (n != 1) || b.Revision != 1 {
					t.Errorf("the sandbox %d is kept for %v (by default: %v), at the revision %d", n+1, b.Retention, b.RetentionDefault, b.Revision)
				}
			}
			return nil
		})
	})

	t.Run("DueBefore", func(t *testing.T) {
		s := open(t)
		n := 0
		add := func(state sandbox.State, c sandbox.Clocks) {
			n++
			b := box(n)
			b.Key, b.State, b.Clocks, b.StoppedAt, b.LastActivity = "", state, c, epoch, epoch.Add(time.Hour)
			insert(t, s, b)
		}
		add(sandbox.Stopped, sandbox.Clocks{})                                // 1: none of its clocks runs
		add(sandbox.Running, sandbox.Clocks{ExpiresAt: epoch.Add(time.Hour)}) // 2
		add(sandbox.Stopped, sandbox.Clocks{Retention: time.Hour})            // 3: an hour after its stop
		add(sandbox.Paused, sandbox.Clocks{Retention: time.Hour})             // 4: likewise
		add(sandbox.Running, sandbox.Clocks{Retention: time.Hour})            // 5: never
		add(sandbox.Stopped, sandbox.Clocks{TTL: time.Hour})                  // 6: two hours after the epoch
		add(sandbox.Running, sandbox.Clocks{AutoDelete: true})                // 7: never
		add(sandbox.Stopped, sandbox.Clocks{AutoDelete: true})                // 8: always
		add(sandbox.Running, sandbox.Clocks{IdleTimeout: time.Nanosecond})    // 9: idleness is not looked at
		add(sandbox.Archived, sandbox.Clocks{Retention: time.Hour})           // 10: as 3
		add(sandbox.Stopped, sandbox.Clocks{ArchiveAfter: time.Hour})         // 11: an hour after its stop
		add(sandbox.Archived, sandbox.Clocks{ArchiveAfter: time.Hour})        // 12: never again
		add(sandbox.Running, sandbox.Clocks{ArchiveAfter: time.Hour})         // 13: never
		down := []sandbox.State{sandbox.Stopped, sandbox.Archived, sandbox.Failed}
		for _, c := range []struct {
			name string
			q    store.SandboxQuery
			want []int
		}{
			{"Before", store.SandboxQuery{DueBefore: epoch.Add(time.Hour - time.Microsecond)}, []int{8, 6}}, // 6's activity is still to come
			{"AtTheInstant", store.SandboxQuery{DueBefore: epoch.Add(time.Hour)}, []int{11, 10, 8, 4, 3, 2}},
			{"BeforeTheLast", store.SandboxQuery{DueBefore: epoch.Add(2*time.Hour - time.Microsecond)}, []int{11, 10, 8, 4, 3, 2}},
			{"After", store.SandboxQuery{DueBefore: epoch.Add(2 * time.Hour)}, []int{11, 10, 8, 6, 4, 3, 2}},
			{"WithStates", store.SandboxQuery{DueBefore: epoch.AddDate(1, 0, 0), States: down, Oldest: true}, []int{3, 6, 8, 10, 11}},
			{"InAnotherProject", store.SandboxQuery{DueBefore: epoch.AddDate(1, 0, 0), Project: "other"}, nil},
		} {
			want := []sandbox.ID{}
			for _, n := range c.want {
				want = append(want, boxID(n))
			}
			page, _ := list(t, s, c.q)
			wantSame(t, c.name, ids(page), want)
			view(t, s, func(tx store.Tx) error {
				counts, err := tx.Sandboxes().Count(c.q)
				total := 0
				for _, n := range counts {
					total += n
				}
				wantSame(t, c.name+": the sum of Count", total, len(want))
				return err
			})
		}
	})
	sandboxPages(t, open)
}

// sandboxPages tests counts and pages.
func sandboxPages(t *testing.T, open func(*testing.T) store.Store) {
	t.Run("CountsFollowEveryChange", func(t *testing.T) {
		s := open(t)
		rng := rand.New(rand.NewPCG(1, 2))
		states := sandbox.States()
		all := map[int]*sandbox.Sandbox{}
		projects := []string{"a", "b"}
		for step := range 400 {
			fails := rng.IntN(10) == 0
			next := map[int]*sandbox.Sandbox{}
			for n, b := range all {
				c := *b
				next[n] = &c
			}
			err := inUpdate(t, s, func(tx store.Tx) (err error) {
				for range 1 + rng.IntN(3) {
					n := rng.IntN(30)
					b := next[n]
					switch {
					case b == nil:
						b = box(n)
						b.Project, b.State = projects[n%2], states[rng.IntN(len(states))]
						next[n], err = b, tx.Sandboxes().Insert(b)
					case rng.IntN(4) == 0:
						delete(next, n)
						err = tx.Sandboxes().Delete(b.ID)
					default:
						b.State = states[rng.IntN(len(states))]
						if rng.IntN(2) == 0 {
							b.Key = fmt.Sprintf("key-%d-%d", n, step)
						}
						err = tx.Sandboxes().Update(b)
					}
					if err != nil {
						return err
					}
				}
				if fails {
					return fault.New(fault.Internal, "no")
				}
				return nil
			})
			if fails != (err != nil) {
				t.Fatalf("step %d: %v", step, err)
			}
			if !fails {
				all = next
			}
		}
		for _, project := range []string{"a", "b", "", "none"} {
			want := map[sandbox.State]int{}
			for _, b := range all {
				if project == "" || b.Project == project {
					want[b.State]++
				}
			}
			view(t, s, func(tx store.Tx) error {
				counts, err := tx.Sandboxes().Count(store.SandboxQuery{Project: project})
				wantSame(t, "Count of project "+project, counts, want)
				return err
			})
		}
	})

	for _, oldest := range []bool{false, true} {
		t.Run(fmt.Sprintf("PagesHaveNoGapAndNoDoubleWhileRowsCome/Oldest=%v", oldest), func(t *testing.T) {
			s := open(t)
			const before = 57
			for n := range before {
				b := box(n)
				b.CreatedAt = epoch.Add(-1 * 1e9 * (1 << 0)) // most of them at one instant: the id decides
				if n%5 == 0 {
					b.CreatedAt = box(n).CreatedAt
				}
				insert(t, s, b)
			}
			seen := map[sandbox.ID]int{}
			var order []*sandbox.Sandbox
			q := store.SandboxQuery{Project: "default", Limit: 4, Oldest: oldest}
			for n := before; ; n += 2 {
				page, next := list(t, s, q)
				for _, b := range page {
					seen[b.ID]++
				}
				order = append(order, page...)
				if next == "" {
					break
				}
				if q.Cursor = next; n > 10*before {
					t.Fatal("the pages do not end")
				}
				if n < before+20 { // one new row at either end, while we page
					first, last := box(n), box(n+1)
					first.CreatedAt, last.CreatedAt = epoch.AddDate(-1, 0, n), epoch.AddDate(1, 0, n)
					insert(t, s, first, last)
				}
			}
			for n := range before {
				if seen[boxID(n)] != 1 {
					t.Errorf("%s was given %d times, want once", boxID(n), seen[boxID(n)])
				}
			}
			inOrder := func(a, b *sandbox.Sandbox) int {
				c := a.CreatedAt.Compare(b.CreatedAt)
				if c == 0 {
					c = strings.Compare(string(a.ID), string(b.ID))
				}
				if !oldest {
					c = -c
				}
				return c
			}
			if !slices.IsSortedFunc(order, inOrder) {
				t.Error("the pages are not in order")
			}
		})
	}

	t.Run("AFullLastPageHasNoNext", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1), box(2))
		_, next := list(t, s, store.SandboxQuery{Limit: 2})
		wantSame(t, "next", next, "")
	})
	t.Run("WrongPagesAreInvalid", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1), box(2), box(3))
		appendEvents(t, s, event(1, "a"), event(1, "b"))
		_, good := list(t, s, store.SandboxQuery{Limit: 1})
		_, ofEvents := listEvents(t, s, store.EventQuery{Limit: 1})
		changed := good[:len(good)-1] + "A"
		if changed == good {
			changed = good[:len(good)-1] + "B"
		}
		for name, q := range map[string]store.SandboxQuery{
			"TooLarge":          {Limit: store.MaxPage + 1},
			"Negative":          {Limit: -1},
			"NegativeOffset":    {Offset: -1},
			"OffsetAndCursor":   {Offset: 1, Cursor: good},
			"Nonsense":          {Cursor: "nonsense"},
			"Changed":           {Cursor: changed},
			"Cut":               {Cursor: good[:len(good)-4]},
			"Longer":            {Cursor: good + "AAAA"},
			"OtherOrder":        {Cursor: good, Oldest: true},
			"OtherListing":      {Cursor: ofEvents},
			"OtherProject":      {Cursor: good, Project: "elsewhere"},
			"NotPrintable":      {Cursor: "\x00\xff\n"},
			"Huge":              {Cursor: strings.Repeat("A", 1<<20)},
			"SQL":               {Cursor: "' OR 1=1 --"},
			"WithItsWhiteSpace": {Cursor: good + "\n"},
		} {
			t.Run(name, func(t *testing.T) {
				err := s.View(t.Context(), func(tx store.Tx) error { _, _, err := tx.Sandboxes().List(q); return err })
				wantCode(t, "List", err, fault.Invalid)
				if err != nil && len(err.Error()) > 500 {
					t.Errorf("the message has %d bytes", len(err.Error()))
				}
			})
		}
		for name, q := range map[string]store.EventQuery{
			"TooLarge": {Limit: store.MaxPage + 1}, "Negative": {Limit: -1}, "Nonsense": {Cursor: "nonsense"},
			"OtherListing": {Cursor: good}, "OtherOrder": {Cursor: ofEvents, Oldest: true}, "OtherOrderByAfter": {Cursor: ofEvents, After: 1},
		} {
			t.Run("Events"+name, func(t *testing.T) {
				err := s.View(t.Context(), func(tx store.Tx) error { _, _, err := tx.Events().List(q); return err })
				wantCode(t, "List", err, fault.Invalid)
			})
		}
	})
}
