// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func sandboxRecords(t *testing.T, open func(*testing.T) store.Store) {
	get := func(t *testing.T, s store.Store, id sandbox.ID) (b *sandbox.Sandbox, err error) {
		err = s.View(t.Context(), func(tx store.Tx) (err error) { b, err = tx.Sandboxes().Get(id); return err })
		return b, err
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		full, bare := box(1), &sandbox.Sandbox{ID: boxID(2), Project: "default"}
		insert(t, s, full, bare)
		wantSame(t, "Revision after Insert", full.Revision, int64(1))
		for _, want := range []*sandbox.Sandbox{full, bare} {
			got, err := get(t, s, want.ID)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "Get", got, want)
		}
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Sandboxes().ByKey("default", full.Key)
			wantSame(t, "ByKey", got, full)
			return err
		})
	})
	t.Run("WhatIsMissingIsNotFound", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1), &sandbox.Sandbox{ID: boxID(2), Project: "default"})
		_, err := get(t, s, "nothing")
		wantCode(t, "Get", err, fault.NotFound)
		for _, key := range []string{"nothing", ""} {
			err = s.View(t.Context(), func(tx store.Tx) error { _, err := tx.Sandboxes().ByKey("default", key); return err })
			wantCode(t, "ByKey "+key, err, fault.NotFound)
		}
		err = s.View(t.Context(), func(tx store.Tx) error { _, err := tx.Sandboxes().ByKey("other", "key-1"); return err })
		wantCode(t, "ByKey of another project", err, fault.NotFound)
		wantCode(t, "Update", inUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Update(box(9)) }), fault.NotFound)
		wantCode(t, "Delete", inUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(boxID(9)) }), fault.NotFound)
	})
	t.Run("ATakenIDExists", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1))
		again := box(1)
		again.Key, again.Project = "else", "other"
		wantCode(t, "Insert", inUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Insert(again) }), fault.Exists)
	})
	t.Run("ATakenKeyExistsInItsProjectOnly", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1))
		same := box(2)
		same.Key = box(1).Key
		wantCode(t, "Insert", inUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Insert(same) }), fault.Exists)
		same.Project = "other"
		insert(t, s, same)
		none, noneToo := box(3), box(4)
		none.Key, noneToo.Key = "", ""
		insert(t, s, none, noneToo)

		other := box(5)
		insert(t, s, other)
		other.Key = box(1).Key
		wantCode(t, "Update", inUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Update(other) }), fault.Exists)
	})
	t.Run("AKeyIsFreeAgainAfterDelete", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1))
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(boxID(1)) })
		_, err := get(t, s, boxID(1))
		wantCode(t, "Get", err, fault.NotFound)
		again := box(2)
		again.Key = box(1).Key
		insert(t, s, again)
	})
	t.Run("UpdateReplacesAndCounts", func(t *testing.T) {
		s := open(t)
		b := box(1)
		insert(t, s, b)
		want := box(2) // other values in every field
		want.ID, want.CreatedAt, want.Key, want.Revision = b.ID, b.CreatedAt, "renamed", b.Revision
		want.Env, want.Handle, want.State = nil, nil, sandbox.Running
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Update(want) })
		wantSame(t, "Revision", want.Revision, int64(2))
		got, err := get(t, s, b.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Get", got, want)
	})
	t.Run("TallyReplacesTheFiguresOnly", func(t *testing.T) {
		s := open(t)
		want := box(1)
		insert(t, s, want)
		given := box(2) // other values in every field
		given.ID, given.Revision = want.ID, want.Revision
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Tally(given) })
		wantSame(t, "Revision", given.Revision, int64(2))
		want.LastActivity, want.ExecCount, want.ExecTime = given.LastActivity, given.ExecCount, given.ExecTime
		want.BytesUploaded, want.BytesDownloaded, want.Revision = given.BytesUploaded, given.BytesDownloaded, 2
		got, err := get(t, s, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Get", got, want)
		for name, c := range map[string]struct {
			change func(*sandbox.Sandbox)
			code   fault.Code
		}{
			"an old revision": {func(b *sandbox.Sandbox) { b.Revision = 1 }, fault.Conflict},
			"another project": {func(b *sandbox.Sandbox) { b.Project = "other" }, fault.NotFound},
			"nobody's id":     {func(b *sandbox.Sandbox) { b.ID = boxID(9) }, fault.NotFound},
		} {
			b := *want
			c.change(&b)
			wantCode(t, name, inUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Tally(&b) }), c.code)
		}
	})
	t.Run("AnOldRevisionIsAConflict", func(t *testing.T) {
		s := open(t)
		first := box(1)
		insert(t, s, first)
		second := *first
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Update(first) })
		second.StopDetail = "lost"
		wantCode(t, "Update", inUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Update(&second) }), fault.Conflict)
		got, err := get(t, s, boxID(1))
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Get", got, first)
	})
	t.Run("AnUpdateUnderAnotherProjectIsNotFound", func(t *testing.T) {
		s := open(t)
		b := box(1)
		insert(t, s, b)
		foreign := *b
		foreign.Project = "other"
		wantCode(t, "Update", inUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Update(&foreign) }), fault.NotFound)
	})
	t.Run("OfManyInsertsOfOneKeyOneWins", func(t *testing.T) {
		s := open(t)
		var won, lost atomic.Int64
		var wg sync.WaitGroup
		for n := range 100 {
			wg.Go(func() {
				b := box(n)
				b.Key = "the same"
				err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Insert(b) })
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
	t.Run("RuntimesGivesAllThereAre", func(t *testing.T) {
		s := open(t)
		other := box(2)
		other.Runtime, other.Project, other.State = "other", "other", sandbox.Running
		insert(t, s, box(1), other, box(3))
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(boxID(3)) })
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Sandboxes().Runtimes()
			wantSame(t, "Runtimes", got, map[sandbox.ID]string{boxID(1): "memory", boxID(2): "other"})
			return err
		})
	})
	t.Run("EventsOutliveTheirSandbox", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1))
		appendEvents(t, s, event(1, "p"))
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(boxID(1)) })
		page, _ := listEvents(t, s, store.EventQuery{Sandbox: boxID(1)})
		wantSame(t, "events", len(page), 1)
	})
}
