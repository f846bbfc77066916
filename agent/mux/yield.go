// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mux

import (
	"sync/atomic"
	"time"
)

// A bulk stream yields to interactive ones. All streams share one connection, and at an agent one processor, which a download takes as
// fast as it can: a command beside it then waits for the bytes in flight, and for their encryption. So a stream that has moved
// muchMoved bytes waits before each piece as long as streams that have moved less are in use.
const (
	// muchMoved is how many bytes a stream sends and receives before it yields.
	muchMoved = 1 << 20
	// usedFor is how long a stream counts as in use after its last piece: a command runs meanwhile.
	usedFor = 100 * time.Millisecond
	// pieceEvery is the time between the pieces of a stream that yields: 32 MB/s.
	pieceEvery = time.Millisecond
)

// yielding is the state by which the streams of a session yield to each other.
type yielding struct {
	since time.Time    // that last counts from
	last  atomic.Int64 // when a stream that has carried little was used last; zero: none was
	clock func() time.Time
	sleep func(time.Duration)
}

func newYielding() *yielding {
	return &yielding{since: time.Now(), clock: time.Now, sleep: time.Sleep}
}

// use notes that a stream which has carried little is in use.
func (y *yielding) use() { y.last.Store(max(1, int64(y.clock().Sub(y.since)))) }

// wait sleeps for pieceEvery if a stream that has moved little is in use.
func (y *yielding) wait() {
	if last := y.last.Load(); last > 0 && y.clock().Sub(y.since)-time.Duration(last) < usedFor {
		y.sleep(pieceEvery)
	}
}
