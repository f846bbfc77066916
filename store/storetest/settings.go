// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"

	"sandpit.dev/store"
)

func settingRecords(t *testing.T, open func(*testing.T) store.Store) {
	s := open(t)
	at := time.Date(2026, 11, 27, 12, 0, 0, 123000, time.UTC)
	idle := store.Setting{Name: "idle", Value: "60", ChangedAt: at, ChangedBy: "ops"}
	list := store.Setting{Name: "allowed", Value: `["a","b\u0000"]`, ChangedAt: at.Add(time.Hour), ChangedBy: "other ops"}
	update(t, s, func(tx store.Tx) error {
		for _, r := range []store.Setting{{Name: "idle", Value: "1"}, list, idle} {
			if err := tx.Settings().Put(r); err != nil {
				return err
			}
		}
		return tx.Settings().Delete("never set")
	})
	read := func(says string, want ...store.Setting) {
		t.Helper()
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Settings().List()
			wantSame(t, says, got, want)
			return err
		})
	}
	read("two", list, idle)
	update(t, s, func(tx store.Tx) error { return tx.Settings().Delete("allowed") })
	read("one", idle)
}
