// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
)

// The time is synctest's: it passes when all wait.
func TestAProjectTakesNoFasterThanItsRateAndHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(budget.Options{Rate: 100})
		began := time.Now()
		take := func(project string, n int64, want time.Duration) {
			t.Helper()
			room := b.Open(project)
			defer room.Close()
			if _, err := room.Take(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(began); got != want {
				t.Errorf("%s has its %d bytes after %v, want %v", project, n, got, want)
			}
		}
		take("alice", 50, 0)
		take("alice", 150, 0) // what is ahead ends within it
		take("alice", 100, time.Second)
		take("bob", 200, time.Second)
		take("alice", 1, 2*time.Second)
		time.Sleep(time.Hour)
		began = time.Now()
		take("alice", 100, 0) // an hour of rest is worth as much as a second
		take("alice", 100, 0)
		take("alice", 1, time.Second)
	})
}

func TestTakingFasterThanTheRateIsRefusedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(budget.Options{Rate: 100, Wait: 3 * time.Second, Waiting: 1})
		open := func(project string) *budget.Room {
			r := b.Open(project)
			t.Cleanup(r.Close)
			return r
		}
		if _, err := open("alice").Take(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		if _, err := open("alice").Take(t.Context(), 1); fault.Of(err) != fault.Exhausted {
			t.Errorf("nine seconds behind: got %v, want fault.Exhausted", err)
		}
		time.Sleep(7 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan error)
		go func() {
			_, err := open("alice").Take(ctx, 1)
			waits <- err
		}()
		synctest.Wait()
		if _, err := open("alice").Take(t.Context(), 1); fault.Of(err) != fault.Exhausted {
			t.Errorf("beside one that waits: got %v, want fault.Exhausted", err)
		}
		cancel()
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: got %v", err)
		}
		if _, err := open("alice").Take(t.Context(), 1); err != nil {
			t.Errorf("once nobody waits: %v", err)
		}
	})
}

func TestWhatIsSentOnIsPacedHoweverMuchItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(budget.Options{Rate: 100, Wait: time.Second, Waiting: 1})
		began := time.Now()
		pace := func(r *budget.Room, n int64, want time.Duration) {
			t.Helper()
			if err := r.Pace(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(began); got != want {
				t.Errorf("after %d bytes more: %v, want %v", n, got, want)
			}
		}
		alice, bob := b.Open("alice"), b.Open("bob")
		defer alice.Close()
		defer bob.Close()
		pace(alice, 1000, 0)
		pace(alice, 100, 9*time.Second) // a Take would be refused
		pace(bob, 100, 9*time.Second)
		pace(alice, 100, 10*time.Second)
		pace(nil, 1<<40, 10*time.Second)
		if held := alice.Held(); held != 0 {
			t.Errorf("the room holds %d bytes, want none", held)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- alice.Pace(ctx, 1) }()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: got %v", err)
		}
	})
}
