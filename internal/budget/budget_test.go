// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
)

// long is a wait that a test never sees the end of.
const long = time.Hour

func take(t *testing.T, r *budget.Room, n int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that it must not wait
	if got, err := r.Take(ctx, n); err != nil || got != n {
		t.Fatalf("taking %d: got %d, %v", n, got, err)
	}
}

func waits(t *testing.T, r *budget.Room, n int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.Take(ctx, n); !errors.Is(err, context.Canceled) || got != 0 {
		t.Fatalf("taking %d: got %d, %v; want it to wait", n, got, err)
	}
}

func TestAProjectHoldsNoMoreThanItLeavesFree(t *testing.T) {
	b := budget.New(budget.Options{Total: 800, Wait: long})
	a := b.Open("a")
	for range 4 {
		take(t, a, 100)
	}
	waits(t, a, 1)
	second := b.Open("b")
	take(t, second, 100)
	take(t, second, 100)
	waits(t, second, 1)
	third := b.Open("c")
	take(t, third, 100)
	waits(t, third, 1)
	take(t, b.Open("d"), 50) // there is always some left
	if got := b.Used(); got != 750 {
		t.Errorf("used: got %d, want 750", got)
	}
	a.Close()
	a.Close()
	take(t, second, 50)
	if got := b.Used(); got != 400 {
		t.Errorf("used after a project went: got %d, want 400", got)
	}
}

func TestOneAnswerTakesAtMostAnEighth(t *testing.T) {
	b := budget.New(budget.Options{Total: 800})
	r := b.Open("a")
	if got, err := r.Take(t.Context(), 1<<40); got != 100 || err != nil || r.Held() != 100 {
		t.Errorf("got %d, %v and holds %d, want 100", got, err, r.Held())
	}
	r.Give(30)
	if b.Used() != 70 {
		t.Errorf("used: got %d, want 70", b.Used())
	}
	r.Give(1000)
	r.Close()
	if got, err := r.Take(t.Context(), 1); err == nil || got != 0 || b.Used() != 0 {
		t.Errorf("a closed room: took %d, %v; used %d", got, err, b.Used())
	}
	var none *budget.Room
	if got, err := none.Take(t.Context(), 5); got != 5 || err != nil {
		t.Errorf("no room: got %d, %v", got, err)
	}
	none.Give(5)
	none.Close()
}

// blocked begins to take, and returns once the request waits.
func blocked(t *testing.T, b *budget.Budget, r *budget.Room, n int64) <-chan error {
	t.Helper()
	before := b.Waiting()
	done := make(chan error, 1)
	go func() {
		_, err := r.Take(t.Context(), n)
		done <- err
	}()
	for deadline := time.Now().Add(30 * time.Second); b.Waiting() == before; {
		if time.Now().After(deadline) {
			t.Fatal("it does not wait")
		}
	}
	return done
}

func TestWhoWaitsIsServedInOrderAndHoldsUpNoOtherProject(t *testing.T) {
	b := budget.New(budget.Options{Total: 800, Wait: long})
	var rooms []*budget.Room
	for range 4 {
		r := b.Open("a")
		take(t, r, 100)
		rooms = append(rooms, r)
	}
	first, second := b.Open("a"), b.Open("a")
	big := blocked(t, b, first, 100)
	small := blocked(t, b, second, 1)
	take(t, b.Open("b"), 100) // a's waiting is a's
	rooms[0].Close()
	select {
	case err := <-small:
		t.Fatalf("the one behind went first: %v", err)
	default: // what b holds leaves a too little for the first of them
	}
	rooms[1].Close()
	if err := <-big; err != nil {
		t.Error(err)
	}
	if err := <-small; err != nil {
		t.Error(err)
	}
}

func TestWaitingHasAnEndAndABound(t *testing.T) {
	b := budget.New(budget.Options{Total: 800, Wait: time.Millisecond})
	for range 4 {
		take(t, b.Open("a"), 100)
	}
	_, err := b.Open("a").Take(t.Context(), 100)
	if f := fault.As(err); f.Code != fault.Exhausted || f.Retry <= 0 || f.Remedy == "" {
		t.Errorf("after the wait: got %+v", f)
	}
	b = budget.New(budget.Options{Total: 800, Wait: long, Waiting: 2})
	full := b.Open("a")
	for range 4 {
		take(t, full, 100)
	}
	x, y := blocked(t, b, b.Open("a"), 100), blocked(t, b, b.Open("a"), 100)
	if _, err := b.Open("a").Take(t.Context(), 100); !fault.Is(err, fault.Exhausted) {
		t.Errorf("the third that waits: got %v", err)
	}
	full.Close()
	if err := errors.Join(<-x, <-y); err != nil {
		t.Error(err)
	}
	if b.Waiting() != 0 || b.Used() != 200 {
		t.Errorf("%d wait and %d are used, want 0 and 200", b.Waiting(), b.Used())
	}
}

func TestAllThatIsTakenComesBack(t *testing.T) {
	b := budget.New(budget.Options{Total: 800, Wait: long, Waiting: 1000})
	var most atomic.Int64
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				r := b.Open(fmt.Sprint(i % 5))
				if i%7 == 0 {
					go cancel()
				}
				if _, err := r.Take(ctx, int64(1+i*3)); err == nil {
					if u := b.Used(); u > most.Load() {
						most.Store(u)
					}
				}
				r.Close()
				cancel()
			}
		})
	}
	wg.Wait()
	if most.Load() > 800 || b.Used() != 0 || b.Waiting() != 0 {
		t.Errorf("at most %d of 800 were used; at the end %d, and %d wait", most.Load(), b.Used(), b.Waiting())
	}
}

func BenchmarkARoomThatIsNotUsed(b *testing.B) {
	all := budget.New(budget.Options{})
	for b.Loop() {
		all.Open("a").Close()
	}
}
