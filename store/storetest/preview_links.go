// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// previewLink is a record with every field set.
func previewLink(id string, of sandbox.ID, at time.Time) *store.PreviewLink {
	return &store.PreviewLink{ID: id, Sandbox: of, Project: "default", Port: 8000, CreatedAt: at, ExpiresAt: at.Add(time.Hour), CreatedBy: "alice \"a\""}
}

func previewLinkRecords(t *testing.T, open func(*testing.T) store.Store) {
	insert := func(t *testing.T, s store.Store, all ...*store.PreviewLink) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			for _, l := range all {
				if err := tx.PreviewLinks().Insert(l); err != nil {
					return err
				}
			}
			return nil
		})
	}
	list := func(t *testing.T, s store.Store, of sandbox.ID) (out []*store.PreviewLink) {
		t.Helper()
		view(t, s, func(tx store.Tx) (err error) { out, err = tx.PreviewLinks().List(of); return err })
		return out
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		first, second := previewLink("z", boxID(1), epoch), previewLink("a", boxID(1), epoch.Add(time.Second))
		second.ExpiresAt = time.Time{}
		insert(t, s, second, first, previewLink("b", boxID(2), epoch))
		wantSame(t, "List, the oldest first", list(t, s, boxID(1)), []*store.PreviewLink{first, second})
		var got *store.PreviewLink
		view(t, s, func(tx store.Tx) (err error) { got, err = tx.PreviewLinks().Get("a"); return err })
		wantSame(t, "Get", got, second)
	})
	t.Run("OneOfAnIdAndNoneThatIsMissing", func(t *testing.T) {
		s := open(t)
		insert(t, s, previewLink("a", boxID(1), epoch))
		wantCode(t, "a second one", inUpdate(t, s, func(tx store.Tx) error { return tx.PreviewLinks().Insert(previewLink("a", boxID(2), epoch)) }), fault.Exists)
		wantCode(t, "Delete by another sandbox", inUpdate(t, s, func(tx store.Tx) error { return tx.PreviewLinks().Delete(boxID(2), "a") }), fault.NotFound)
		wantCode(t, "Get of none", inUpdate(t, s, func(tx store.Tx) error { _, err := tx.PreviewLinks().Get("b"); return err }), fault.NotFound)
		update(t, s, func(tx store.Tx) error { return tx.PreviewLinks().Delete(boxID(1), "a") })
		wantSame(t, "List", len(list(t, s, boxID(1))), 0)
	})
	t.Run("ExpiredOnesGo", func(t *testing.T) {
		s := open(t)
		kept, ever, other := previewLink("kept", boxID(1), epoch.Add(time.Second)), previewLink("ever", boxID(1), epoch), previewLink("other", boxID(2), epoch)
		ever.ExpiresAt = time.Time{}
		insert(t, s, previewLink("gone", boxID(1), epoch), kept, ever, other)
		update(t, s, func(tx store.Tx) error { return tx.PreviewLinks().Expire(boxID(1), epoch.Add(time.Hour)) })
		wantSame(t, "List", list(t, s, boxID(1)), []*store.PreviewLink{ever, kept})
		wantSame(t, "another sandbox's", list(t, s, boxID(2)), []*store.PreviewLink{other})
	})
	t.Run("AllOfASandboxPassToAnother", func(t *testing.T) {
		s := open(t)
		first, second := previewLink("a", boxID(1), epoch), previewLink("b", boxID(2), epoch.Add(time.Second))
		insert(t, s, first, second, previewLink("c", boxID(3), epoch))
		update(t, s, func(tx store.Tx) error { return tx.PreviewLinks().Move(boxID(1), boxID(2)) })
		first.Sandbox = boxID(2)
		wantSame(t, "List", list(t, s, boxID(2)), []*store.PreviewLink{first, second})
		wantSame(t, "of the first", len(list(t, s, boxID(1))), 0)
		wantSame(t, "another's", len(list(t, s, boxID(3))), 1)
	})
	t.Run("ThoseOfADeletedSandboxGo", func(t *testing.T) {
		s := open(t)
		b := box(1)
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Insert(b) })
		insert(t, s, previewLink("gone", b.ID, epoch), previewLink("kept", boxID(2), epoch))
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(b.ID) })
		wantSame(t, "List", len(list(t, s, b.ID)), 0)
		wantSame(t, "another's", len(list(t, s, boxID(2))), 1)
	})
}
