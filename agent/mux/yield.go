// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mux

import (
	"sync/atomic"
	"time"
)

// What carries much gives way to what carries little. All streams go over one carrier, and at an agent over one processor too, which a
// download takes as fast as it may: then a command beside it waits for bytes that are under way, and for the time in which they are
// sealed and sent. So a stream that has carried much waits before each piece as long as others, which have carried little, are in use.
const (
	// muchMoved is what a stream may send and be sent before it gives way.
	muchMoved = 1 << 20
	// usedFor is how long a stream counts as in use after its last piece: a command runs meanwhile.
	usedFor = 100 * time.Millisecond
	// pieceEvery is how far apart the pieces of one that gives way are: 32 MB/s.
	pieceEvery = time.Millisecond
)

// yielding is what the streams of a session know of each other.
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

// wait gives way to those that are in use.
func (y *yielding) wait() {
	if last := y.last.Load(); last > 0 && y.clock().Sub(y.since)-time.Duration(last) < usedFor {
		y.sleep(pieceEvery)
	}
}
