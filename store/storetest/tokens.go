// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/store"
)

func token(n int) *access.Token {
	hash := sha256.Sum256([]byte{byte(n)})
	return &access.Token{
		ID: fmt.Sprintf("token%011d", n), Project: "default", Name: fmt.Sprintf("name %d", n), Hash: hash[:],
		Scopes: access.DefaultScopes(), Profile: "orkestr", CreatedAt: epoch, LastUsedAt: epoch.Add(time.Hour), ExpiresAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
}

func tokenRecords(t *testing.T, open func(*testing.T) store.Store) {
	add := func(t *testing.T, s store.Store, tokens ...*access.Token) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			for _, one := range tokens {
				if err := tx.Tokens().Insert(one); err != nil {
					return err
				}
			}
			return nil
		})
	}
	byHash := func(t *testing.T, s store.Store, hash []byte) (got *access.Token, err error) {
		err = s.View(t.Context(), func(tx store.Tx) (err error) { got, _, err = tx.Tokens().ByHash(hash); return err })
		return got, err
	}
	names := func(t *testing.T, s store.Store, project string) []string {
		out := []string{}
		view(t, s, func(tx store.Tx) error {
			all, err := tx.Tokens().List(project)
			for _, one := range all {
				out = append(out, one.Project+"/"+one.Name)
			}
			return err
		})
		return out
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		bare := &access.Token{ID: "bare", Project: "p", Name: "n", Hash: []byte{0}}
		for _, want := range []*access.Token{token(1), bare} {
			add(t, s, want)
			got, err := byHash(t, s, want.Hash)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "ByHash", got, want)
		}
	})
	t.Run("AnUnknownHashIsNotFound", func(t *testing.T) {
		s := open(t)
		add(t, s, token(1))
		for _, hash := range [][]byte{nil, {}, {0}, token(2).Hash, token(1).Hash[:31]} {
			_, err := byHash(t, s, hash)
			wantCode(t, fmt.Sprintf("ByHash of %x", hash), err, fault.NotFound)
		}
	})
	t.Run("NamesAreUniqueInTheirProject", func(t *testing.T) {
		s := open(t)
		add(t, s, token(1))
		for name, change := range map[string]func(*access.Token){
			"Name": func(o *access.Token) { o.Name = token(1).Name },
			"ID":   func(o *access.Token) { o.ID = token(1).ID },
			"Hash": func(o *access.Token) { o.Hash = token(1).Hash },
		} {
			other := token(2)
			change(other)
			wantCode(t, "Insert with a taken "+name, inUpdate(t, s, func(tx store.Tx) error { return tx.Tokens().Insert(other) }), fault.Exists)
		}
		other := token(2)
		other.Name, other.Project = token(1).Name, "other"
		add(t, s, other)
		wantSame(t, "all", names(t, s, ""), []string{"default/name 1", "other/name 1"})
		wantSame(t, "of one project", names(t, s, "other"), []string{"other/name 1"})
	})
	t.Run("DeleteByIDOrName", func(t *testing.T) {
		s := open(t)
		other, sly := token(4), token(5)
		other.Project, other.Name = "other", token(1).Name
		sly.Name = token(2).ID // a name that is another's id
		add(t, s, token(1), token(2), token(3), other, sly)
		del := func(project, ref string) error {
			return inUpdate(t, s, func(tx store.Tx) error { return tx.Tokens().Delete(project, ref) })
		}
		wantCode(t, "Delete of nothing", del("default", "nothing"), fault.NotFound)
		wantCode(t, "Delete in another project", del("other", token(1).ID), fault.NotFound)
		wantCode(t, "Delete of a name that two projects have", del("", token(1).Name), fault.Invalid)
		for _, c := range [][2]string{{"default", token(1).Name}, {"", token(2).ID}, {"", other.Name}} {
			if err := del(c[0], c[1]); err != nil {
				t.Errorf("Delete(%q, %q): %v", c[0], c[1], err)
			}
		}
		wantSame(t, "left", names(t, s, ""), []string{"default/name 3", "default/" + sly.Name})
		_, err := byHash(t, s, token(1).Hash)
		wantCode(t, "ByHash of a deleted one", err, fault.NotFound)
	})
	t.Run("RotateKeepsOldSecretsForAWhile", func(t *testing.T) {
		s := open(t)
		add(t, s, token(1), token(2))
		id := token(1).ID
		secret := func(n int) []byte { return token(100 + n).Hash }
		rotate := func(n int, now, until time.Time) error {
			return inUpdate(t, s, func(tx store.Tx) error {
				got, err := tx.Tokens().Rotate("default", token(1).Name, secret(n), now, until)
				if err == nil {
					wantSame(t, "its hash", got.Hash, secret(n))
				}
				return err
			})
		}
		ends := func(hash []byte) (until time.Time) {
			t.Helper()
			view(t, s, func(tx store.Tx) error {
				got, at, err := tx.Tokens().ByHash(hash)
				if err != nil {
					return err
				}
				wantSame(t, "the token of the hash", got.ID, id)
				until = at
				return nil
			})
			return until
		}
		at := func(h int) time.Time { return epoch.Add(time.Duration(h) * time.Hour) }
		if err := rotate(1, at(0), at(10)); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the first", ends(token(1).Hash), at(10))
		wantSame(t, "the present one", ends(secret(1)), time.Time{})
		if err := rotate(2, at(1), at(5)); err != nil { // nobody's time is made longer
			t.Fatal(err)
		}
		wantSame(t, "the first", ends(token(1).Hash), at(5))
		wantSame(t, "the second", ends(secret(1)), at(5))
		if err := rotate(3, at(2), at(20)); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the first", ends(token(1).Hash), at(5))
		wantSame(t, "the third", ends(secret(2)), at(20))
		got, err := byHash(t, s, token(1).Hash)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "OldUntil", got.OldUntil, at(20))
		other, err := byHash(t, s, token(2).Hash)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "another token", other, token(2))

		// What is past is gone with the next rotation, and all without a grace.
		if err := rotate(4, at(6), at(30)); err != nil {
			t.Fatal(err)
		}
		_, err = byHash(t, s, token(1).Hash)
		wantCode(t, "ByHash of a past secret", err, fault.NotFound)
		if err := rotate(5, at(7), at(7)); err != nil {
			t.Fatal(err)
		}
		for n := 1; n < 5; n++ {
			_, err = byHash(t, s, secret(n))
			wantCode(t, fmt.Sprintf("ByHash of secret %d", n), err, fault.NotFound)
		}
		for n := range access.MaxOldSecrets {
			if err := rotate(10+n, at(8), at(50)); err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, "one too many", rotate(30, at(8), at(50)), fault.Conflict)
		wantSame(t, "the present one", ends(secret(10+access.MaxOldSecrets-1)), time.Time{})
		wantCode(t, "in another project", inUpdate(t, s, func(tx store.Tx) error {
			_, err := tx.Tokens().Rotate("other", token(1).Name, secret(40), at(8), at(9))
			return err
		}), fault.NotFound)
		update(t, s, func(tx store.Tx) error { return tx.Tokens().Delete("", id) })
		for n := range access.MaxOldSecrets {
			_, err = byHash(t, s, secret(10+n))
			wantCode(t, "ByHash of a deleted token's secret", err, fault.NotFound)
		}
	})
	t.Run("TouchNotesTheLatestUse", func(t *testing.T) {
		s := open(t)
		add(t, s, token(1))
		late, early := epoch.Add(48*time.Hour), epoch
		for _, at := range []time.Time{late, early} {
			update(t, s, func(tx store.Tx) error { return tx.Tokens().Touch(token(1).ID, at) })
		}
		got, err := byHash(t, s, token(1).Hash)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "LastUsedAt", got.LastUsedAt, late)
		wantCode(t, "Touch of nothing", inUpdate(t, s, func(tx store.Tx) error { return tx.Tokens().Touch("nothing", late) }), fault.NotFound)
	})
}
