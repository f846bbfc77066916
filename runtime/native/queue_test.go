// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestQueue(t *testing.T) {
	fill := func(t *testing.T, q queue) (leave []func()) {
		t.Helper()
		for range cap(q) {
			l, err := q.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, l)
		}
		return leave
	}
	t.Run("LetsAFewInAtATimeInTheirOrder", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(2)
			inside := fill(t, q)
			came := make(chan int, 3)
			for i := range 3 {
				go func() {
					leave, err := q.enter(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					came <- i
					leave()
				}()
				synctest.Wait() // it waits, behind those before it
			}
			if len(came) != 0 {
				t.Fatalf("%d came in beside %d", len(came), cap(q))
			}
			inside[0]()
			for want := range 3 {
				if got := <-came; got != want {
					t.Errorf("%d came in, and it was the turn of %d", got, want)
				}
			}
		})
	})
	t.Run("WaitsOnlySoLong", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(2)
			fill(t, q)
			began := time.Now()
			leave, err := q.enter(t.Context())
			if err != nil || time.Since(began) != queuePatience {
				t.Fatalf("%v after %v, want that it goes on after %v", err, time.Since(began), queuePatience)
			}
			if leave(); len(q) != cap(q) {
				t.Errorf("who had no turn gave one back: %d of %d are taken", len(q), cap(q))
			}
		})
	})
	t.Run("EndsWithItsCaller", func(t *testing.T) {
		q := newQueue(2)
		fill(t, q)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.enter(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
}
