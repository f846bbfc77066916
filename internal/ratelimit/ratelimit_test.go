// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"sync"
	"testing"
	"time"

	"sandpit.dev/internal/ratelimit"
)

func TestTake(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := ratelimit.New[string](2, 3, 10)
	for range 3 {
		if wait := l.Take("a", now); wait != 0 {
			t.Fatalf("within the burst: wait %v", wait)
		}
	}
	for range 100 { // what is refused takes nothing
		if wait := l.Take("a", now); wait != 500*time.Millisecond {
			t.Fatalf("beyond the burst: wait %v, want 500ms", wait)
		}
	}
	if wait := l.Take("b", now); wait != 0 {
		t.Errorf("another key waits %v", wait)
	}
	now = now.Add(500 * time.Millisecond)
	if wait := l.Take("a", now); wait != 0 {
		t.Errorf("after the wait: wait %v", wait)
	}
	if wait := l.Take("a", now); wait == 0 {
		t.Error("it had two")
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := ratelimit.New[int](1, 1, 100)
	for n := range 100_000 {
		l.Take(n, now)
		l.Take(-1, now) // one that is used all the time is not forgotten
	}
	if got := l.Len(); got != 100 {
		t.Errorf("it keeps %d keys, want 100", got)
	}
	if wait := l.Take(-1, now); wait == 0 {
		t.Error("the one that is in use was forgotten")
	}
}

func TestManyAtOnceTakeNoMoreThanThereIs(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := ratelimit.New[string](1, 50, 10)
	var mu sync.Mutex
	var wg sync.WaitGroup
	taken := 0
	for range 200 {
		wg.Go(func() {
			if l.Take("a", now) == 0 {
				mu.Lock()
				taken++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if taken != 50 {
		t.Errorf("%d were taken, want 50", taken)
	}
}
