// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"time"
)

// queue lets a few starts go on at a time, first come, first served. A start is processor
// time for the most part: a hundred that share the processors all end last, and in turn
// half of them end before half of the time is over.
type queue chan struct{}

// queuePatience is how long a start waits for its turn at most. Those before it may wait
// themselves, for a disk that is busy.
const queuePatience = 5 * time.Second

func newQueue(processors int) queue { return make(queue, 2*max(processors, 2)) }

// enter waits for a turn, and gives what ends it. It fails only when ctx does.
func (q queue) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-q }
	select {
	case q <- struct{}{}:
		return leave, nil
	default:
	}
	timer := time.NewTimer(queuePatience)
	defer timer.Stop()
	select {
	case q <- struct{}{}:
		return leave, nil
	case <-timer.C:
		return func() {}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// awaitTurn waits for the start's turn, which lasts until its agent serves.
func (s *start) awaitTurn(ctx context.Context) (err error) {
	if s.leave, err = s.d.queue.enter(ctx); err == nil {
		s.undo.Add(s.leave)
	}
	return err
}
