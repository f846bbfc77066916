// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"testing"
	"time"

	"sandpit.dev/store"
)

func change(n int) *store.Change {
	return &store.Change{
		Project: []string{"a", "b", ""}[n%3], Type: "sandbox.started", At: time.UnixMicro(1_700_000_000_000_000 + int64(n)).UTC(),
		Actor: "alice", Via: "rest", Subject: string(boxID(n)), Object: []byte{'{', '}', byte(n)},
	}
}

func changes(t *testing.T, open func(*testing.T) store.Store) {
	list := func(t *testing.T, s store.Store, after int64, limit int) (out []*store.Change, oldest, newest int64) {
		t.Helper()
		view(t, s, func(tx store.Tx) (err error) {
			if oldest, newest, err = tx.Changes().Bounds(); err != nil {
				return err
			}
			out, err = tx.Changes().List(after, limit)
			return err
		})
		return out, oldest, newest
	}
	numbers := func(all []*store.Change) (seqs []int64) {
		for _, c := range all {
			seqs = append(seqs, c.Seq)
		}
		return seqs
	}
	fill := func(t *testing.T, s store.Store, n int) (all []*store.Change) {
		t.Helper()
		for i := range n {
			c := change(i)
			update(t, s, func(tx store.Tx) error { return tx.Changes().Append(c) })
			all = append(all, c)
		}
		return all
	}
	t.Run("TheyAreListedInTheirOrder", func(t *testing.T) {
		s := open(t)
		if none, oldest, newest := list(t, s, 0, 10); len(none) != 0 || oldest != 0 || newest != 0 {
			t.Errorf("of none: got %v, %d to %d", none, oldest, newest)
		}
		all := fill(t, s, 5)
		got, oldest, newest := list(t, s, 0, 10)
		wantSame(t, "all", got, all)
		wantSame(t, "bounds", []int64{oldest, newest}, []int64{all[0].Seq, all[4].Seq})
		got, _, _ = list(t, s, all[1].Seq, 2)
		wantSame(t, "behind the second", got, all[2:4])
		got, _, _ = list(t, s, newest, 2)
		wantSame(t, "behind the newest", len(got), 0)
	})
	t.Run("WhatIsUndoneLeavesNone", func(t *testing.T) {
		s := open(t)
		no := errors.New("no")
		if err := inUpdate(t, s, func(tx store.Tx) error { return errors.Join(tx.Changes().Append(change(1)), no) }); !errors.Is(err, no) {
			t.Fatalf("got %v", err)
		}
		all, _, _ := list(t, s, 0, 10)
		wantSame(t, "all", len(all), 0)
	})
	t.Run("TheOldestArePrunedAndNeverTheNewest", func(t *testing.T) {
		s := open(t)
		all := numbers(fill(t, s, 6))
		prune := func(upto int64, limit int) (n int) {
			update(t, s, func(tx store.Tx) (err error) { n, err = tx.Changes().Prune(upto, limit); return err })
			return n
		}
		wantSame(t, "up to none", prune(0, 10), 0)
		wantSame(t, "up to the third, at most 2", prune(all[2], 2), 2)
		got, _, _ := list(t, s, 0, 10)
		wantSame(t, "left", numbers(got), all[2:])
		wantSame(t, "all", prune(all[5]+100, 10), 3)
		got, oldest, newest := list(t, s, 0, 10)
		wantSame(t, "left", numbers(got), all[5:])
		wantSame(t, "bounds", []int64{oldest, newest}, []int64{all[5], all[5]})
		more := change(9)
		update(t, s, func(tx store.Tx) error { return tx.Changes().Append(more) })
		if more.Seq <= all[5] {
			t.Errorf("the number %d came again behind %d", more.Seq, all[5])
		}
	})
}
