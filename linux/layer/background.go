// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import "sync"

// background does one thing behind its callers' backs, one time after the other: it begins
// at least once after each kick, and kicks that come meanwhile share the next time.
type background struct {
	do func()

	mu             sync.Mutex
	running, again bool
	work           sync.WaitGroup
}

func (b *background) kick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.again = true
	if !b.running {
		b.running = true
		b.work.Go(b.run)
	}
}

func (b *background) run() {
	for b.next() {
		b.do()
	}
}

// next reports whether there was a kick since the last time began.
func (b *background) next() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.again = b.again, false
	return b.running
}

// wait returns when it is done with all kicks so far.
func (b *background) wait() { b.work.Wait() }
