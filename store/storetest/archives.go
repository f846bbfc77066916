// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func unownedArchiveRecords(t *testing.T, open func(*testing.T) store.Store) {
	all := func(t *testing.T, s store.Store) (out []store.UnownedArchive) {
		t.Helper()
		view(t, s, func(tx store.Tx) (err error) { out, err = tx.UnownedArchives().All(); return err })
		return out
	}
	t.Run("OneIsThereFromPutToDelete", func(t *testing.T) {
		s := open(t)
		one, two := store.UnownedArchive{ID: "one", Sandbox: boxID(1)}, store.UnownedArchive{ID: "two", Sandbox: boxID(1)}
		update(t, s, func(tx store.Tx) error {
			for _, a := range []store.UnownedArchive{two, one, one} {
				if err := tx.UnownedArchives().Put(a); err != nil {
					return err
				}
			}
			return nil
		})
		wantSame(t, "All, by id", all(t, s), []store.UnownedArchive{one, two})
		for range 2 {
			update(t, s, func(tx store.Tx) error { return tx.UnownedArchives().Delete("one") })
		}
		wantSame(t, "the one that is left", all(t, s), []store.UnownedArchive{two})
	})
	t.Run("TheArchiveOfADeletedSandboxIsOne", func(t *testing.T) {
		s := open(t)
		away, never := box(1), box(2)
		never.Key, never.Archive = "never", sandbox.Archive{}
		insert(t, s, away)
		insert(t, s, never)
		for _, b := range []*sandbox.Sandbox{away, never} {
			update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(b.ID) })
		}
		wantSame(t, "All", all(t, s), []store.UnownedArchive{{ID: away.Archive.ID, Sandbox: away.ID}})
	})
}
