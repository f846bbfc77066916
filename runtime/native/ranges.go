// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"os"
	"sync"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/spawn"
	"sandpit.dev/runtime/native/furnish"
)

const (
	haveReady = 8 // so many are ready ahead; one takes 1.3 ms
	fewReady  = 2 // with fewer the next is made whatever goes on
	// rangesQuiet is how long no sandbox may have begun or gone before one is made for which
	// none was given back.
	rangesQuiet = 20 * time.Millisecond
)

// ranges hands out uid ranges, each with a user namespace that maps it, a fresh
// network namespace and a fresh /dev. A few are ready ahead: that takes as long as
// all else of a sandbox's start. No process is in them.
type ranges struct {
	free   *host.Ranges
	kits   *furnish.Kits
	mounts *os.File // that they are made in

	mu       sync.Mutex
	ready    []uidRange
	given    int           // since one was last made: whoever ends a sandbox does not wait for the next
	low      chan struct{} // wakes refill; each take and give does
	inflight *inflight
}

// uidRange is a range, and what was made for one sandbox of it.
type uidRange struct {
	host.Range
	kit *furnish.Kit // nil: none was made, or it was used
}

// close closes what the range has of its own.
func (u *uidRange) close() {
	if u.kit != nil {
		_ = u.kit.Close()
		u.kit = nil
	}
}

// newRanges returns the ranges of a driver's directory. program, old, small and m are furnish.NewKits'.
func newRanges(dir, program string, mounts *os.File, c *inflight, old, small bool, m spawn.Method) (*ranges, error) {
	kits, err := furnish.NewKits(program, old, small, m)
	if err != nil {
		return nil, err
	}
	return &ranges{free: host.NewRanges(dir, m), kits: kits, mounts: mounts, low: make(chan struct{}, 1), inflight: c}, nil
}

// refill makes namespaces ahead until ctx is done: as many as are given back, and the rest
// when nothing goes on, so that nobody's create has to share the processor with it.
func (r *ranges) refill(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := r.fill(ctx)
		timer.Stop()
		if wait > 0 {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.low:
		case <-timer.C:
		}
	}
}

// fill makes what can be made now, and says when to go on; 0: when one is taken.
func (r *ranges) fill(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		wait := r.inflight.idle(rangesQuiet)
		r.mu.Lock()
		missing := len(r.ready) < haveReady
		now := r.given > 0 || len(r.ready) < fewReady || wait == 0
		switch {
		case !missing: // nobody's create pays later for one that was given back now
			r.given = 0
		case now:
			r.given = max(0, r.given-1)
		}
		r.mu.Unlock()
		switch {
		case !missing || !now:
			return wait
		}
		u, err := r.make()
		if err != nil {
			return 0 // whoever takes the next one hears why
		}
		r.mu.Lock()
		r.ready = append(r.ready, u)
		r.mu.Unlock()
	}
	return 0
}

// take returns a free range, complete.
func (r *ranges) take() (uidRange, error) {
	r.mu.Lock()
	n := len(r.ready)
	if n == 0 {
		r.mu.Unlock()
		return r.make()
	}
	u := r.ready[n-1]
	r.ready = r.ready[:n-1]
	r.mu.Unlock()
	poke(r.low)
	return u, nil
}

// make completes a range that was given back, or a new one.
func (r *ranges) make() (uidRange, error) {
	free, err := r.free.Take()
	if err != nil {
		return uidRange{}, err
	}
	u := uidRange{Range: free}
	if u.kit, err = r.kits.Make(u.NS, r.mounts); err != nil {
		r.free.Release(u.Range)
		return uidRange{}, fault.Wrap(fault.Unavailable, err, "the host gives no network namespace, or no file systems").
			WithRemedy("run `sandpit doctor`; user.max_net_namespaces may be too low")
	}
	return u, nil
}

// reserve marks the range of a sandbox that an earlier server started.
func (r *ranges) reserve(base uint32) uidRange { return uidRange{Range: r.free.Reserve(base)} }

// give returns a range; none of its processes is left. What it still has of its own
// may have been used: it is closed.
func (r *ranges) give(u uidRange) {
	u.close()
	r.free.Release(u.Range)
	r.mu.Lock()
	r.given = min(r.given+1, haveReady)
	r.mu.Unlock()
	poke(r.low)
}

func (r *ranges) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.ready {
		u.close()
		r.free.Release(u.Range)
	}
	r.ready = nil
	r.free.Close()
	_ = r.kits.Close()
}
