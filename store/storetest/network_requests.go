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

// networkRequest is a record with every field set.
func networkRequest(id string, of sandbox.ID, at time.Time) *store.NetworkRequest {
	return &store.NetworkRequest{
		ID: id, Sandbox: of, Ref: "box", Project: "default", Presets: []string{"node", "python"}, Domains: []string{"a.test", "b.test"},
		Names: []sandbox.PresetDomain{{Preset: "python", Domain: "c.test", Source: sandbox.PresetFromImage}, {Preset: "node", Domain: "d.test", Source: "host"}},
		Why:   "says \"it\"\nneeds \x00 it", Actor: "alice", At: at, Until: at.Add(time.Hour),
	}
}

func networkRequestRecords(t *testing.T, open func(*testing.T) store.Store) {
	insert := func(t *testing.T, s store.Store, all ...*store.NetworkRequest) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			for _, r := range all {
				if err := tx.NetworkRequests().Insert(r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	all := func(t *testing.T, s store.Store) (out []*store.NetworkRequest) {
		t.Helper()
		view(t, s, func(tx store.Tx) (err error) { out, err = tx.NetworkRequests().All(); return err })
		return out
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		bare := networkRequest("bare", boxID(1), epoch)
		bare.Presets, bare.Domains, bare.Names, bare.Why = nil, nil, nil, ""
		later := networkRequest("later", boxID(2), epoch.Add(time.Second))
		insert(t, s, later, bare)
		wantSame(t, "All, the oldest first", all(t, s), []*store.NetworkRequest{bare, later})
	})
	t.Run("OneOfAnIdAndNoneThatIsMissing", func(t *testing.T) {
		s := open(t)
		insert(t, s, networkRequest("a", boxID(1), epoch))
		wantCode(t, "a second one", inUpdate(t, s, func(tx store.Tx) error { return tx.NetworkRequests().Insert(networkRequest("a", boxID(2), epoch)) }), fault.Exists)
		wantCode(t, "Delete of none", inUpdate(t, s, func(tx store.Tx) error { return tx.NetworkRequests().Delete("b") }), fault.NotFound)
		update(t, s, func(tx store.Tx) error { return tx.NetworkRequests().Delete("a") })
		wantSame(t, "All", len(all(t, s)), 0)
	})
	t.Run("ExpiredOnesGo", func(t *testing.T) {
		s := open(t)
		kept := networkRequest("kept", boxID(1), epoch.Add(time.Second))
		insert(t, s, networkRequest("gone", boxID(1), epoch), kept)
		update(t, s, func(tx store.Tx) error { return tx.NetworkRequests().Expire(epoch.Add(time.Hour)) })
		wantSame(t, "All", all(t, s), []*store.NetworkRequest{kept})
	})
	t.Run("ThoseOfADeletedSandboxGo", func(t *testing.T) {
		s := open(t)
		b := box(1)
		kept := networkRequest("kept", boxID(2), epoch)
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Insert(b) })
		insert(t, s, networkRequest("gone", b.ID, epoch), kept)
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(b.ID) })
		wantSame(t, "All", all(t, s), []*store.NetworkRequest{kept})
	})
}
