// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func transactions(t *testing.T, open func(*testing.T) store.Store) {
	empty := func(t *testing.T, s store.Store) {
		t.Helper()
		page, _ := list(t, s, store.SandboxQuery{})
		wantSame(t, "sandboxes", ids(page), []sandbox.ID{})
		events, _ := listEvents(t, s, store.EventQuery{})
		wantSame(t, "events", seqs(events), []int64{})
	}
	both := func(tx store.Tx) error {
		return errors.Join(tx.Sandboxes().Insert(box(1)), tx.Events().Append(event(1, "p")))
	}

	t.Run("AnErrorUndoesEverything", func(t *testing.T) {
		s := open(t)
		want := errors.New("no")
		if got := inUpdate(t, s, func(tx store.Tx) error { return errors.Join(both(tx), want) }); !errors.Is(got, want) {
			t.Errorf("got %v, want the function's own error", got)
		}
		empty(t, s)
	})
	t.Run("APanicUndoesEverythingAndGoesOn", func(t *testing.T) {
		s := open(t)
		func() {
			defer func() {
				if got := recover(); got != "boom" {
					t.Errorf("recovered %v, want the function's own panic", got)
				}
			}()
			_ = inUpdate(t, s, func(tx store.Tx) error { _ = both(tx); panic("boom") })
		}()
		empty(t, s)
		update(t, s, both) // and the store goes on
	})
	t.Run("APanicInAViewHarmsNothing", func(t *testing.T) {
		s := open(t)
		for range 20 { // more than any pool of readers
			func() {
				defer func() { _ = recover() }()
				_ = s.View(t.Context(), func(store.Tx) error { panic("boom") })
			}()
		}
		empty(t, s)
	})
	t.Run("ACanceledContextUndoesEverything", func(t *testing.T) {
		s := open(t)
		for name, fn := range map[string]func(cancel func(), tx store.Tx) error{
			"Before": func(cancel func(), tx store.Tx) error { cancel(); return both(tx) },
			"After":  func(cancel func(), tx store.Tx) error { err := both(tx); cancel(); return err },
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wantCode(t, "Update", s.Update(ctx, func(tx store.Tx) error { return fn(cancel, tx) }), fault.Canceled)
				empty(t, s)
			})
		}
		update(t, s, both)
	})
	t.Run("ACanceledContextEndsWaitingForAnotherUpdate", func(t *testing.T) {
		s := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got error
		update(t, s, func(store.Tx) error {
			var wg sync.WaitGroup
			wg.Go(func() { got = s.Update(ctx, func(store.Tx) error { return nil }) })
			cancel()
			wg.Wait()
			return nil
		})
		wantCode(t, "Update", got, fault.Canceled)
	})
	t.Run("ACanceledViewLeavesTheStoreInOrder", func(t *testing.T) {
		s := open(t)
		update(t, s, both)
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			err := s.View(ctx, func(tx store.Tx) error {
				cancel()
				_, err := tx.Sandboxes().Get(boxID(1))
				return err
			})
			wantCode(t, "View", err, fault.Canceled)
		}
		view(t, s, func(tx store.Tx) error { _, err := tx.Sandboxes().Get(boxID(1)); return err })
	})
	t.Run("AViewSeesOnePointInTime", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1))
		view(t, s, func(tx store.Tx) error {
			before, err := tx.Sandboxes().Count(store.SandboxQuery{})
			if err != nil {
				return err
			}
			var wg sync.WaitGroup // Update must not be called by the View's own goroutine
			wg.Go(func() { insert(t, s, box(2)) })
			wg.Wait()
			after, err := tx.Sandboxes().Count(store.SandboxQuery{})
			wantSame(t, "the count within one View", after, before)
			return err
		})
	})
	t.Run("AnUpdateSeesItsOwnChanges", func(t *testing.T) {
		s := open(t)
		update(t, s, func(tx store.Tx) error {
			if err := tx.Sandboxes().Insert(box(1)); err != nil {
				return err
			}
			_, err := tx.Sandboxes().Get(boxID(1))
			return err
		})
	})
	t.Run("AViewCannotWrite", func(t *testing.T) {
		s := open(t)
		if err := s.View(t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Insert(box(1)) }); err == nil {
			t.Error("an Insert inside a View worked")
		}
		if err := s.View(t.Context(), func(tx store.Tx) error { return tx.Events().Append(event(1, "")) }); err == nil {
			t.Error("an Append inside a View worked")
		}
		empty(t, s)
	})
	t.Run("ATransactionEndsWithItsFunction", func(t *testing.T) {
		s := open(t)
		var kept store.Tx
		update(t, s, func(tx store.Tx) error { kept = tx; return nil })
		if err := kept.Sandboxes().Insert(box(1)); err == nil {
			t.Error("an Insert after the transaction's end worked")
		}
		empty(t, s)
	})
	t.Run("ConcurrentUpdatesLoseNoChange", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1))
		const workers, rounds = 8, 25
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range rounds {
					err := s.Update(t.Context(), func(tx store.Tx) error {
						b, err := tx.Sandboxes().Get(boxID(1))
						if err != nil {
							return err
						}
						b.ExecCount++
						return tx.Sandboxes().Update(b)
					})
					if err != nil {
						t.Errorf("Update: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
		view(t, s, func(tx store.Tx) error {
			b, err := tx.Sandboxes().Get(boxID(1))
			if err == nil {
				wantSame(t, "ExecCount", b.ExecCount, box(1).ExecCount+workers*rounds)
			}
			return err
		})
	})
	t.Run("ChangedClosesAtACommitOnly", func(t *testing.T) {
		s := open(t)
		changed := s.Changed()
		view(t, s, func(store.Tx) error { return nil })
		_ = inUpdate(t, s, func(store.Tx) error { return errors.New("no") })
		select {
		case <-changed:
			t.Error("Changed closed without a commit")
		default:
		}
		update(t, s, both)
		select {
		case <-changed:
		default:
			t.Error("Changed is open after a commit")
		}
		select {
		case <-s.Changed():
			t.Error("the next Changed is closed already")
		default:
		}
	})
	t.Run("AClosedStoreIsUnavailable", func(t *testing.T) {
		s := open(t)
		for range 2 {
			if err := s.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
		}
		wantCode(t, "Update", inUpdate(t, s, both), fault.Unavailable)
		wantCode(t, "View", s.View(t.Context(), func(store.Tx) error { return nil }), fault.Unavailable)
	})
}
