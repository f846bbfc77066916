// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// session is a record with every field set.
func session(id, project string, at time.Time) *access.Session {
	return &access.Session{
		ID: id, Hash: bytes.Repeat([]byte(id[:1]), 32), TokenHash: bytes.Repeat([]byte{0xff}, 32), TokenID: "token", Project: project, Actor: "alice \"a\"",
		Address: "::1", Agent: "Mozilla/5.0 (é)", CreatedAt: at, LastUsedAt: at, ExpiresAt: at.Add(time.Hour),
	}
}

func sessionRecords(t *testing.T, open func(*testing.T) store.Store) {
	insert := func(t *testing.T, s store.Store, all ...*access.Session) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			for _, one := range all {
				if err := tx.Sessions().Insert(one); err != nil {
					return err
				}
			}
			return nil
		})
	}
	list := func(t *testing.T, s store.Store, project string) (out []*access.Session) {
		t.Helper()
		view(t, s, func(tx store.Tx) (err error) { out, err = tx.Sessions().List(project); return err })
		return out
	}
	byHash := func(t *testing.T, s store.Store, of *access.Session) (out *access.Session, err error) {
		t.Helper()
		err = inUpdate(t, s, func(tx store.Tx) (err error) { out, err = tx.Sessions().ByHash(of.Hash); return err })
		return out, err
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		first, second, other, code := session("z", "default", epoch), session("a", "default", epoch.Add(time.Second)), session("o", "other", epoch.Add(2*time.Second)), session("c", "default", epoch)
		code.Code = true
		insert(t, s, second, first, other, code)
		wantSame(t, "List, the oldest first and without codes", list(t, s, "default"), []*access.Session{first, second})
		wantSame(t, "List of all", list(t, s, ""), []*access.Session{first, second, other})
		for _, want := range []*access.Session{first, code} {
			got, err := byHash(t, s, want)
			wantCode(t, "ByHash", err, "")
			wantSame(t, "ByHash", got, want)
		}
	})
	t.Run("OneOfAnIdAndOfASecretAndNoneThatIsMissing", func(t *testing.T) {
		s := open(t)
		insert(t, s, session("a", "default", epoch))
		same := session("b", "default", epoch)
		same.Hash = session("a", "", epoch).Hash
		for what, one := range map[string]*access.Session{"an id": session("a", "other", epoch), "a secret": same} {
			wantCode(t, "a second one of "+what, inUpdate(t, s, func(tx store.Tx) error { return tx.Sessions().Insert(one) }), fault.Exists)
		}
		_, err := byHash(t, s, session("x", "", epoch))
		wantCode(t, "ByHash of none", err, fault.NotFound)
		wantCode(t, "Touch of none", inUpdate(t, s, func(tx store.Tx) error { return tx.Sessions().Touch("x", epoch) }), fault.NotFound)
		wantCode(t, "Delete of none", inUpdate(t, s, func(tx store.Tx) error { return tx.Sessions().Delete("x") }), fault.NotFound)
		update(t, s, func(tx store.Tx) error { return tx.Sessions().Delete("a") })
		wantSame(t, "List", len(list(t, s, "")), 0)
	})
	t.Run("AUseIsNeverEarlier", func(t *testing.T) {
		s := open(t)
		want := session("a", "default", epoch)
		insert(t, s, want)
		for _, at := range []time.Duration{2 * time.Minute, time.Minute} {
			update(t, s, func(tx store.Tx) error { return tx.Sessions().Touch("a", epoch.Add(at)) })
		}
		want.LastUsedAt = epoch.Add(2 * time.Minute)
		wantSame(t, "List", list(t, s, ""), []*access.Session{want})
	})
	t.Run("ExpiredAndUnusedOnesGo", func(t *testing.T) {
		s := open(t)
		expired, unused, kept, code := session("e", "default", epoch), session("u", "default", epoch), session("k", "default", epoch), session("c", "default", epoch)
		unused.ExpiresAt, kept.ExpiresAt, kept.LastUsedAt = epoch.Add(2*time.Hour), epoch.Add(2*time.Hour), epoch.Add(30*time.Minute)
		code.Code, code.ExpiresAt = true, epoch.Add(2*time.Hour)
		insert(t, s, expired, unused, kept, code)
		update(t, s, func(tx store.Tx) error { return tx.Sessions().Expire(epoch.Add(time.Hour), epoch.Add(30*time.Minute)) })
		wantSame(t, "List", list(t, s, ""), []*access.Session{kept})
		_, err := byHash(t, s, code)
		wantCode(t, "a code is not used before it is", err, "")
	})
}
