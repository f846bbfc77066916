// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"hash/fnv"
	"os"
	"sync"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/native/spawn"
)

// Host uids are handed out in ranges of spawn.RangeSize from firstUID up. The
// range of a sandbox is its own while it is up, so that no two sandboxes share
// an id that the kernel knows.
const (
	firstUID   = 1 << 20
	rangeCount = (1<<32 - 1<<16 - firstUID) / spawn.RangeSize
	keepSpare  = 64 // most user namespaces of free ranges that are kept
	haveSpare  = 8  // so many are made ahead; making one takes 0.3 ms
)

// ranges hands out uid ranges, each with a user namespace that maps it.
type ranges struct {
	mu    sync.Mutex
	next  uint32
	taken map[uint32]bool
	spare []uidRange
	low   chan struct{} // wakes refill
}

// uidRange is a range and the namespace that maps it.
type uidRange struct {
	base uint32
	ns   *os.File
}

// newRanges starts at a place that depends on the data directory, so that two
// servers on one host are unlikely to use the same ranges.
func newRanges(dir string) *ranges {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dir))
	return &ranges{next: h.Sum32() % rangeCount, taken: map[uint32]bool{}, low: make(chan struct{}, 1)}
}

// refill makes namespaces ahead until ctx is done.
func (r *ranges) refill(ctx context.Context) {
	for {
		r.mu.Lock()
		want := len(r.spare) < haveSpare
		r.mu.Unlock()
		if want {
			if u, err := r.make(); err == nil {
				r.give(u)
				continue
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-r.low:
		}
	}
}

// take gives a free range.
func (r *ranges) take() (uidRange, error) {
	r.mu.Lock()
	n := len(r.spare)
	if n <= haveSpare/2 {
		select {
		case r.low <- struct{}{}:
		default:
		}
	}
	if n > 0 {
		u := r.spare[n-1]
		r.spare = r.spare[:n-1]
		r.mu.Unlock()
		return u, nil
	}
	r.mu.Unlock()
	return r.make()
}

// make takes a new range and makes its namespace. Ranges that are spare count
// as taken.
func (r *ranges) make() (uidRange, error) {
	r.mu.Lock()
	if len(r.taken) >= rangeCount {
		r.mu.Unlock()
		return uidRange{}, fault.New(fault.Exhausted, "all %d uid ranges of this host are in use", rangeCount)
	}
	var base uint32
	for {
		base = firstUID + r.next*spawn.RangeSize
		r.next = (r.next + 1) % rangeCount
		if !r.taken[base] {
			break
		}
	}
	r.taken[base] = true
	r.mu.Unlock()

	ns, err := spawn.NewUserNS(base)
	if err != nil {
		r.mu.Lock()
		delete(r.taken, base)
		r.mu.Unlock()
		return uidRange{}, fault.Wrap(fault.Unavailable, err, "the host gives no user namespace").
			WithRemedy("run `sandpit doctor`; user.max_user_namespaces may be too low")
	}
	return uidRange{base: base, ns: ns}, nil
}

// reserve marks the range of a sandbox that an earlier server started.
func (r *ranges) reserve(base uint32) uidRange {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[base] = true
	return uidRange{base: base}
}

// give returns a range; none of its processes is left.
func (r *ranges) give(u uidRange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u.ns != nil && len(r.spare) < keepSpare {
		r.spare = append(r.spare, u)
		return
	}
	delete(r.taken, u.base)
	if u.ns != nil {
		_ = u.ns.Close()
	}
}

func (r *ranges) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.spare {
		_ = u.ns.Close()
	}
	r.spare = nil
}
