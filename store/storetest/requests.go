// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// request is a record with every field set, numbered n.
func request(project string, n int) *store.KeyedRequest {
	return &store.KeyedRequest{
		ID: fmt.Appendf([]byte{0, 255}, "%s/%d", project, n), Project: project, Hash: []byte{1, 0, byte(n)},
		CreatedAt: epoch.Add(time.Duration(n) * time.Second), Made: "process a b\n",
		Status: 201, Header: "Location: /v1/x\n", Answer: []byte("{\"a\":\"\x00\"}\n"),
	}
}

func requestRecords(t *testing.T, open func(*testing.T) store.Store) {
	put := func(t *testing.T, s store.Store, all ...*store.KeyedRequest) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			for _, r := range all {
				if err := tx.Requests().Put(r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	get := func(t *testing.T, s store.Store, id []byte) (got *store.KeyedRequest, err error) {
		err = s.View(t.Context(), func(tx store.Tx) (err error) { got, err = tx.Requests().Get(id); return err })
		return got, err
	}
	want := func(t *testing.T, s store.Store, want *store.KeyedRequest) {
		t.Helper()
		got, err := get(t, s, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Get", got, want)
	}
	count := func(t *testing.T, s store.Store, project string) (n int) {
		t.Helper()
		view(t, s, func(tx store.Tx) (err error) { n, err = tx.Requests().Count(project); return err })
		return n
	}
	expire := func(t *testing.T, s store.Store, before time.Time, limit int) (n int) {
		t.Helper()
		update(t, s, func(tx store.Tx) (err error) { n, err = tx.Requests().Expire(before, limit); return err })
		return n
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		bare := request("p", 2)
		bare.Made, bare.Status, bare.Header, bare.Answer = "", 0, "", nil
		put(t, s, request("p", 1), bare)
		want(t, s, request("p", 1))
		want(t, s, bare)
		_, err := get(t, s, []byte("another"))
		wantCode(t, "Get of another", err, fault.NotFound)
	})
	t.Run("WhatIsMadeIsAppendedAndTheAnswerComesLast", func(t *testing.T) {
		s := open(t)
		r := request("p", 1)
		r.Made, r.Status, r.Header, r.Answer = "sandbox a\n", 0, "", nil
		put(t, s, r)
		r.Made = "process a b\n"
		put(t, s, r)
		late := *r
		r.Made, r.Status, r.Header, r.Answer = "sandbox a\nprocess a b\n", 200, "A: b\n", []byte("{}")
		put(t, s, r)
		want(t, s, r)
		late.Made, late.Status, late.Header, late.Answer = "more\n", 0, "", nil
		put(t, s, &late)
		r.Made = "sandbox a\nprocess a b\nmore\n"
		want(t, s, r)
		wantSame(t, "Count", count(t, s, "p"), 1)
	})
	t.Run("ALaterAttemptReplacesTheFirst", func(t *testing.T) {
		s := open(t)
		put(t, s, request("p", 1))
		again := request("p", 1)
		again.CreatedAt, again.Hash = epoch.Add(time.Hour), []byte("other")
		again.Made, again.Status, again.Header, again.Answer = "new\n", 0, "", nil
		put(t, s, again)
		want(t, s, again)
		put(t, s, request("p", 1)) // of the first, late
		want(t, s, again)
		wantSame(t, "Count", count(t, s, "p"), 1)
	})
	t.Run("AnAnswerThatIsTooLargeIsRefused", func(t *testing.T) {
		s := open(t)
		r := request("p", 1)
		r.Answer = make([]byte, store.MaxKeptAnswer)
		put(t, s, r)
		want(t, s, r)
		r.Answer = make([]byte, store.MaxKeptAnswer+1)
		err := inUpdate(t, s, func(tx store.Tx) error { return tx.Requests().Put(r) })
		wantCode(t, "Put of one byte more", err, fault.TooLarge)
	})
	t.Run("TheOldestOfAProjectGo", func(t *testing.T) {
		s := open(t)
		put(t, s, request("other", 1))
		const more = 100
		for first := 0; first < store.MaxKeyedRequests+more; first += more {
			batch := make([]*store.KeyedRequest, more)
			for i := range batch {
				batch[i] = request("p", first+i)
			}
			put(t, s, batch...)
			if n := count(t, s, "p"); n > store.MaxKeyedRequests {
				t.Fatalf("the project has %d requests, more than %d", n, store.MaxKeyedRequests)
			}
		}
		want(t, s, request("p", store.MaxKeyedRequests+more-1))
		want(t, s, request("p", 2*more))
		_, err := get(t, s, request("p", 0).ID)
		wantCode(t, "Get of the oldest", err, fault.NotFound)
		if n := count(t, s, "p"); n < store.MaxKeyedRequests-more {
			t.Errorf("the project has %d requests, far fewer than %d", n, store.MaxKeyedRequests)
		}
		wantSame(t, "Count of another project", count(t, s, "other"), 1)
	})
	t.Run("ExpireRemovesTheOld", func(t *testing.T) {
		s := open(t)
		for n := range 10 {
			put(t, s, request("p", n))
		}
		wantSame(t, "Expire of nothing", expire(t, s, epoch, 100), 0)
		wantSame(t, "Expire", expire(t, s, epoch.Add(5*time.Second), 3), 3)
		wantSame(t, "Expire", expire(t, s, epoch.Add(5*time.Second), 3), 2)
		wantSame(t, "Expire", expire(t, s, epoch.Add(5*time.Second), 3), 0)
		wantSame(t, "Count", count(t, s, "p"), 5)
		want(t, s, request("p", 5))
	})
	t.Run("AViewChangesNothing", func(t *testing.T) {
		s := open(t)
		put(t, s, request("p", 1))
		for name, fn := range map[string]func(store.Tx) error{
			"Put":    func(tx store.Tx) error { return tx.Requests().Put(request("p", 2)) },
			"Expire": func(tx store.Tx) error { _, err := tx.Requests().Expire(epoch.Add(time.Hour), 10); return err },
		} {
			if err := s.View(t.Context(), fn); err == nil {
				t.Errorf("%s in a View is no error", name)
			}
		}
		wantSame(t, "Count", count(t, s, "p"), 1)
	})
}
