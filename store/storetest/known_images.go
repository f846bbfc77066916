// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"

	"sandpit.dev/store"
)

func knownImageRecords(t *testing.T, open func(*testing.T) store.Store) {
	s := open(t)
	list := func() (out []*store.KnownImage) {
		t.Helper()
		view(t, s, func(tx store.Tx) (err error) { out, err = tx.KnownImages().List(); return err })
		return out
	}
	if got := list(); len(got) != 0 {
		t.Errorf("a new store knows of %+v", got)
	}
	second, first := &store.KnownImage{Name: "python", Digest: "sha256:2", Object: []byte(`{"a":1}`)}, &store.KnownImage{Name: "base \"b\"", Digest: "sha256:1", Object: []byte(`{}`)}
	update(t, s, func(tx store.Tx) error {
		for _, i := range []*store.KnownImage{second, first, {Name: "gone", Digest: "sha256:3", Object: []byte("{}")}} {
			if err := tx.KnownImages().Put(i); err != nil {
				return err
			}
		}
		return nil
	})
	second.Digest, second.Object = "sha256:4", []byte(`{"a":2}`)
	update(t, s, func(tx store.Tx) error {
		if err := tx.KnownImages().Put(second); err != nil {
			return err
		}
		for range 2 {
			if err := tx.KnownImages().Delete("gone"); err != nil {
				return err
			}
		}
		return nil
	})
	wantSame(t, "List, by name", list(), []*store.KnownImage{first, second})
}
