// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package ratelimit bounds how often something happens for each of many keys, in bounded memory.
// It does not know what happens, nor whose the keys are.
package ratelimit

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter has a token bucket for each key. It is safe for concurrent use.
type Limiter[K comparable] struct {
	limit rate.Limit
	burst int
	most  int

	mu     sync.Mutex
	of     map[K]*list.Element
	latest *list.List // of *bucket[K], the one used last in front
}

type bucket[K comparable] struct {
	key K
	*rate.Limiter
}

// New returns a Limiter that allows burst at once and perSecond after that, for each of the most
// keys that were used last. A key that others pushed out begins anew.
func New[K comparable](perSecond float64, burst, most int) *Limiter[K] {
	return &Limiter[K]{limit: rate.Limit(perSecond), burst: burst, most: most, of: make(map[K]*list.Element), latest: list.New()}
}

// Take takes one for a key at now, and returns how long it is until there is one to take: zero where
// it was taken.
func (l *Limiter[K]) Take(key K, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of[key]
	if e == nil {
		if l.latest.Len() >= l.most {
			delete(l.of, l.latest.Remove(l.latest.Back()).(*bucket[K]).key)
		}
		e = l.latest.PushFront(&bucket[K]{key, rate.NewLimiter(l.limit, l.burst)})
		l.of[key] = e
	} else {
		l.latest.MoveToFront(e)
	}
	r := e.Value.(*bucket[K]).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// Len returns how many keys are kept.
func (l *Limiter[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest.Len()
}
