// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// snapshot is a record with every field set, numbered n, of the sandbox
// numbered of.
func snapshot(n, of int) *sandbox.Snapshot {
	return &sandbox.Snapshot{
		ID: snapshotID(n), Project: "default", Sandbox: boxID(of), Name: fmt.Sprintf("name-%d", n), Auto: true, Parent: snapshotID(n + 1),
		Image: "python", ImageDigest: "sha256:d", Runtime: "memory",
		Limits: sandbox.Limits{CPU: 1.5, MemoryMB: 512, DiskMB: 1024, Pids: 256}, Env: map[string]string{"A": "1", "B": "two words"},
		State: sandbox.SnapshotReady, SizeBytes: 1 << 40, CreatedAt: epoch.Add(time.Duration(n) * time.Second), CreatedBy: "alice", Detail: "after make test",
		Archive: sandbox.Archive{ID: boxID(9), Place: "directory /x", Digest: "sha256:ab", PackedBytes: 3, Bytes: 1 << 40, At: epoch},
	}
}

func insertSnapshots(t *testing.T, s store.Store, all ...*sandbox.Snapshot) {
	t.Helper()
	update(t, s, func(tx store.Tx) error {
		for _, one := range all {
			if err := tx.Snapshots().Insert(one); err != nil {
				return err
			}
		}
		return nil
	})
}

func listSnapshots(t *testing.T, s store.Store, q store.SnapshotQuery) (page []*sandbox.Snapshot, next string) {
	t.Helper()
	view(t, s, func(tx store.Tx) (err error) { page, next, err = tx.Snapshots().List(q); return err })
	return page, next
}

func snapshotIDs(all []*sandbox.Snapshot) []sandbox.ID {
	out := []sandbox.ID{}
	for _, one := range all {
		out = append(out, one.ID)
	}
	return out
}

func snapshotRecords(t *testing.T, open func(*testing.T) store.Store) {
	t.Run("MoveToAnotherSandbox", func(t *testing.T) {
		s := open(t)
		insertSnapshots(t, s, snapshot(1, 1), snapshot(2, 1), snapshot(3, 2))
		update(t, s, func(tx store.Tx) error { return tx.Snapshots().Move(boxID(1), boxID(2)) })
		if got, _ := listSnapshots(t, s, store.SnapshotQuery{Sandbox: boxID(2), Oldest: true}); len(got) != 3 {
			t.Errorf("got %v", snapshotIDs(got))
		}
		same := snapshot(4, 3)
		same.Name = snapshot(1, 1).Name
		insertSnapshots(t, s, same)
		err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Snapshots().Move(boxID(3), boxID(2)) })
		if !fault.Is(err, fault.Exists) {
			t.Errorf("two of one name: %v", err)
		}
		if got, _ := listSnapshots(t, s, store.SnapshotQuery{Sandbox: boxID(3)}); len(got) != 1 {
			t.Errorf("it moved all the same: %v", snapshotIDs(got))
		}
	})
	get := func(t *testing.T, s store.Store, id sandbox.ID) (got *sandbox.Snapshot, err error) {
		err = s.View(t.Context(), func(tx store.Tx) (err error) { got, err = tx.Snapshots().Get(id); return err })
		return got, err
	}
	byName := func(t *testing.T, s store.Store, of sandbox.ID, name string) (got *sandbox.Snapshot, err error) {
		err = s.View(t.Context(), func(tx store.Tx) (err error) { got, err = tx.Snapshots().ByName(of, name); return err })
		return got, err
	}
	insertOne := func(t *testing.T, s store.Store, one *sandbox.Snapshot) error {
		return inUpdate(t, s, func(tx store.Tx) error { return tx.Snapshots().Insert(one) })
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		full, bare := snapshot(1, 1), &sandbox.Snapshot{ID: snapshotID(2), Project: "default", Sandbox: boxID(1), SizeBytes: -1}
		insertSnapshots(t, s, full, bare)
		for _, want := range []*sandbox.Snapshot{full, bare} {
			got, err := get(t, s, want.ID)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "Get", got, want)
		}
		got, err := byName(t, s, boxID(1), full.Name)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "ByName", got, full)
		page, _ := listSnapshots(t, s, store.SnapshotQuery{Oldest: true})
		wantSame(t, "List", page, []*sandbox.Snapshot{bare, full})
	})
	t.Run("WhatIsMissingIsNotFound", func(t *testing.T) {
		s := open(t)
		unnamed, ofNone := snapshot(1, 1), snapshot(2, 1)
		unnamed.Name, ofNone.Sandbox = "", ""
		insertSnapshots(t, s, unnamed, ofNone, snapshot(3, 2))
		_, err := get(t, s, snapshotID(9))
		wantCode(t, "Get", err, fault.NotFound)
		for name, of := range map[string]sandbox.ID{"": boxID(1), "nothing": boxID(1), "name-3": boxID(1), "name-2": ""} {
			_, err = byName(t, s, of, name)
			wantCode(t, fmt.Sprintf("ByName(%q, %q)", of, name), err, fault.NotFound)
		}
		wantCode(t, "Update", inUpdate(t, s, func(tx store.Tx) error { return tx.Snapshots().Update(snapshot(9, 1)) }), fault.NotFound)
		wantCode(t, "Delete", inUpdate(t, s, func(tx store.Tx) error { return tx.Snapshots().Delete(snapshotID(9)) }), fault.NotFound)
	})
	t.Run("ATakenIDExists", func(t *testing.T) {
		s := open(t)
		insertSnapshots(t, s, snapshot(1, 1))
		again := snapshot(1, 2)
		again.Name, again.Project = "else", "other"
		err := insertOne(t, s, again)
		wantCode(t, "Insert", err, fault.Exists)
		if err != nil && !strings.Contains(err.Error(), "id") {
			t.Errorf("the error %q does not say that it is the id", err)
		}
	})
	t.Run("ATakenNameExistsInItsSandboxOnly", func(t *testing.T) {
		s := open(t)
		insertSnapshots(t, s, snapshot(1, 1))
		same := snapshot(2, 1)
		same.Name = snapshot(1, 1).Name
		wantCode(t, "Insert", insertOne(t, s, same), fault.Exists)
		same.Sandbox = boxID(2)
		insertSnapshots(t, s, same)
		none, noneToo := snapshot(3, 1), snapshot(4, 1)
		none.Name, noneToo.Name = "", ""
		insertSnapshots(t, s, none, noneToo)
		none.Name = snapshot(1, 1).Name
		wantCode(t, "Update", inUpdate(t, s, func(tx store.Tx) error { return tx.Snapshots().Update(none) }), fault.Exists)
	})
	t.Run("NamesWithoutASandboxAreUniqueInTheirProject", func(t *testing.T) {
		s := open(t)
		loose := func(n int, project string) *sandbox.Snapshot {
			one := snapshot(n, 0)
			one.Sandbox, one.Name, one.Project = "", "import", project
			return one
		}
		insertSnapshots(t, s, loose(1, "default"), loose(2, "other"))
		wantCode(t, "Insert", insertOne(t, s, loose(3, "default")), fault.Exists)
	})
	t.Run("ANameCanPassOnInOneTransaction", func(t *testing.T) {
		s := open(t)
		old, next := snapshot(1, 1), snapshot(2, 1)
		insertSnapshots(t, s, old)
		name := old.Name
		next.Name = name
		old.Name, old.State = "", sandbox.SnapshotDeleting
		update(t, s, func(tx store.Tx) error {
			if err := tx.Snapshots().Update(old); err != nil {
				return err
			}
			return tx.Snapshots().Insert(next)
		})
		got, err := byName(t, s, boxID(1), name)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "ByName", got.ID, next.ID)
	})
	t.Run("UpdateReplacesWhatMayChange", func(t *testing.T) {
		s := open(t)
		insertSnapshots(t, s, snapshot(1, 1))
		changed := snapshot(2, 2) // other values in every field
		changed.ID, changed.State, changed.SizeBytes, changed.Detail, changed.Archive = snapshotID(1), sandbox.SnapshotDeleting, 7, "changed", sandbox.Archive{}
		update(t, s, func(tx store.Tx) error { return tx.Snapshots().Update(changed) })
		want := snapshot(1, 1)
		want.Name, want.State, want.SizeBytes, want.Detail, want.Archive = changed.Name, changed.State, changed.SizeBytes, changed.Detail, changed.Archive
		got, err := get(t, s, snapshotID(1))
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Get", got, want)
	})
	t.Run("TheyOutliveTheirSandbox", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1))
		insertSnapshots(t, s, snapshot(1, 1))
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(boxID(1)) })
		got, err := byName(t, s, boxID(1), "name-1")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the snapshot", got, snapshot(1, 1))
		update(t, s, func(tx store.Tx) error { return tx.Snapshots().Delete(snapshotID(1)) })
		_, err = get(t, s, snapshotID(1))
		wantCode(t, "Get of a deleted one", err, fault.NotFound)
	})
	t.Run("OfManyInsertsOfOneNameOneWins", func(t *testing.T) {
		s := open(t)
		var won, lost atomic.Int64
		var wg sync.WaitGroup
		for n := range 100 {
			wg.Go(func() {
				one := snapshot(n, 1)
				one.Name = "the same"
				err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Snapshots().Insert(one) })
				switch {
				case err == nil:
					won.Add(1)
				case fault.Is(err, fault.Exists):
					lost.Add(1)
				default:
					t.Errorf("Insert: %v", err)
				}
			})
		}
		wg.Wait()
		wantSame(t, "won and lost", fmt.Sprint(won.Load(), lost.Load()), "1 99")
	})
	t.Run("AnErrorUndoesEverything", func(t *testing.T) {
		s := open(t)
		insertSnapshots(t, s, snapshot(1, 1))
		_ = inUpdate(t, s, func(tx store.Tx) error {
			_ = tx.Snapshots().Insert(snapshot(2, 1))
			_ = tx.Snapshots().Delete(snapshotID(1))
			return fault.New(fault.Internal, "no")
		})
		page, _ := listSnapshots(t, s, store.SnapshotQuery{})
		wantSame(t, "List", snapshotIDs(page), []sandbox.ID{snapshotID(1)})
	})
}

func snapshotLists(t *testing.T, open func(*testing.T) store.Store) {
	t.Run("Filters", func(t *testing.T) {
		s := open(t)
		odd := func(n int, change func(*sandbox.Snapshot)) *sandbox.Snapshot {
			one := snapshot(n, 1)
			change(one)
			return one
		}
		insertSnapshots(t, s,
			snapshot(1, 1),
			snapshot(2, 2),
			odd(3, func(o *sandbox.Snapshot) { o.Project = "other" }),
			odd(4, func(o *sandbox.Snapshot) { o.Auto = false }),
			odd(5, func(o *sandbox.Snapshot) { o.Name = "" }),
			odd(6, func(o *sandbox.Snapshot) { o.State = sandbox.SnapshotCreating }),
			odd(7, func(o *sandbox.Snapshot) { o.State, o.Sandbox = sandbox.SnapshotDeleting, boxID(2) }),
		)
		yes, no := true, false
		intents := []sandbox.SnapshotState{sandbox.SnapshotCreating, sandbox.SnapshotDeleting}
		for _, c := range []struct {
			name string
			q    store.SnapshotQuery
			want []int
		}{
			{"Nothing", store.SnapshotQuery{}, []int{7, 6, 5, 4, 3, 2, 1}},
			{"Oldest", store.SnapshotQuery{Oldest: true}, []int{1, 2, 3, 4, 5, 6, 7}},
			{"Project", store.SnapshotQuery{Project: "other"}, []int{3}},
			{"NoSuchProject", store.SnapshotQuery{Project: "' OR 1=1 --"}, nil},
			{"Sandbox", store.SnapshotQuery{Sandbox: boxID(2)}, []int{7, 2}},
			{"SandboxOfAnotherProject", store.SnapshotQuery{Project: "other", Sandbox: boxID(2)}, nil},
			{"SandboxAndProject", store.SnapshotQuery{Project: "other", Sandbox: boxID(1)}, []int{3}},
			{"Auto", store.SnapshotQuery{Auto: &yes, Sandbox: boxID(2)}, []int{7, 2}},
			{"NotAuto", store.SnapshotQuery{Auto: &no}, []int{4}},
			{"Named", store.SnapshotQuery{Named: &yes, Project: "default"}, []int{7, 6, 4, 2, 1}},
			{"Unnamed", store.SnapshotQuery{Named: &no}, []int{5}},
			{"Intents", store.SnapshotQuery{States: intents}, []int{7, 6}},
			{"IntentsOldest", store.SnapshotQuery{States: intents, Oldest: true}, []int{6, 7}},
			{"IntentsOfASandbox", store.SnapshotQuery{States: intents, Sandbox: boxID(2)}, []int{7}},
			{"Ready", store.SnapshotQuery{States: []sandbox.SnapshotState{sandbox.SnapshotReady}, Sandbox: boxID(2)}, []int{2}},
			{"ReadyAndCreating", store.SnapshotQuery{States: []sandbox.SnapshotState{sandbox.SnapshotReady, sandbox.SnapshotCreating}}, []int{6, 5, 4, 3, 2, 1}},
			{"All", store.SnapshotQuery{Project: "default", Sandbox: boxID(1), Auto: &yes, Named: &yes, States: intents}, []int{6}},
		} {
			t.Run(c.name, func(t *testing.T) {
				want := []sandbox.ID{}
				for _, n := range c.want {
					want = append(want, snapshotID(n))
				}
				page, _ := listSnapshots(t, s, c.q)
				wantSame(t, "List", snapshotIDs(page), want)
				c.q.Limit = 1 // a page plays no part in it
				view(t, s, func(tx store.Tx) error {
					n, err := tx.Snapshots().Count(c.q)
					wantSame(t, "Count", n, len(want))
					return err
				})
			})
		}
	})
	for _, oldest := range []bool{false, true} {
		t.Run(fmt.Sprintf("PagesHaveNoGapAndNoDoubleWhileRowsCome/Oldest=%v", oldest), func(t *testing.T) {
			s := open(t)
			const before = 37
			for n := range before {
				one := snapshot(n, 1)
				if n%5 != 0 {
					one.CreatedAt = epoch // most of them at one instant: the id decides
				}
				insertSnapshots(t, s, one)
			}
			seen := map[sandbox.ID]int{}
			q := store.SnapshotQuery{Sandbox: boxID(1), Limit: 4, Oldest: oldest}
			for n := before; ; n += 2 {
				page, next := listSnapshots(t, s, q)
				for _, one := range page {
					seen[one.ID]++
				}
				if next == "" {
					break
				}
				if q.Cursor = next; n > 10*before {
					t.Fatal("the pages do not end")
				}
				if n < before+20 { // one new row at either end, while we page
					first, last := snapshot(n, 1), snapshot(n+1, 1)
					first.CreatedAt, last.CreatedAt = epoch.AddDate(-1, 0, n), epoch.AddDate(1, 0, n)
					insertSnapshots(t, s, first, last)
				}
			}
			for n := range before {
				if seen[snapshotID(n)] != 1 {
					t.Errorf("%s was given %d times, want once", snapshotID(n), seen[snapshotID(n)])
				}
			}
		})
	}
	t.Run("WrongPagesAreInvalid", func(t *testing.T) {
		s := open(t)
		insertSnapshots(t, s, snapshot(1, 1), snapshot(2, 1))
		insert(t, s, box(1), box(2))
		_, good := listSnapshots(t, s, store.SnapshotQuery{Limit: 1})
		_, ofSandboxes := list(t, s, store.SandboxQuery{Limit: 1})
		for name, q := range map[string]store.SnapshotQuery{
			"TooLarge": {Limit: store.MaxPage + 1}, "Negative": {Limit: -1}, "Nonsense": {Cursor: "nonsense"},
			"OtherListing": {Cursor: ofSandboxes}, "OtherOrder": {Cursor: good, Oldest: true}, "SQL": {Cursor: "' OR 1=1 --"},
		} {
			t.Run(name, func(t *testing.T) {
				err := s.View(t.Context(), func(tx store.Tx) error { _, _, err := tx.Snapshots().List(q); return err })
				wantCode(t, "List", err, fault.Invalid)
			})
		}
		err := s.View(t.Context(), func(tx store.Tx) error {
			_, _, err := tx.Sandboxes().List(store.SandboxQuery{Cursor: good})
			return err
		})
		wantCode(t, "a listing of sandboxes at a snapshot's cursor", err, fault.Invalid)
	})
}
