// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"hash/fnv"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/spawn"
	"sandpit.dev/runtime/native/furnish"
)

// Host uids are handed out in ranges of spawn.RangeSize from firstUID up. The
// range of a sandbox is its own while it is up, so that no two sandboxes share
// an id that the kernel knows.
const (
	firstUID   = 1 << 20
	rangeCount = (1<<32 - 1<<16 - firstUID) / spawn.RangeSize
	keepSpare  = 64 // most user namespaces of free ranges that are kept, ready ones included
	haveReady  = 8  // so many are ready ahead; one takes 1.3 ms
	fewReady   = 2  // with fewer the next is made whatever goes on
	// rangesQuiet is how long no sandbox may have begun or gone before one is made for which
	// none was given back.
	rangesQuiet = 20 * time.Millisecond
)

// ranges hands out uid ranges, each with a user namespace that maps it, a fresh
// network namespace and a fresh /dev. A few are ready ahead: that takes as long as
// all else of a sandbox's start. No process is in them.
type ranges struct {
	kits   *furnish.Kits
	mounts *os.File     // that they are made in
	also   func() error // makes what else is to be ready and is not; it may fail; nil: nothing

	mu    sync.Mutex
	next  uint32
	taken map[uint32]bool
	spare []uidRange // given back: without a network namespace
	ready []uidRange
	given int           // since one was last made: whoever ends a sandbox does not wait for the next
	low   chan struct{} // wakes refill; each take and give does
	calm  *calm
}

// uidRange is a range, the user namespace that maps it, and what was made for one
// sandbox of that.
type uidRange struct {
	base uint32
	ns   *os.File     // nil: it has none, or a process of the sandbox keeps it
	kept fs.FileInfo  // whose identity ns has; nil: it is not known
	kit  *furnish.Kit // nil: none was made, or it was used
}

// close lets go of what the range has of its own.
func (u *uidRange) close() {
	if u.kit != nil {
		_ = u.kit.Close()
		u.kit = nil
	}
}

// newRanges starts at a place that depends on the data directory, so that two
// servers on one host are unlikely to use the same ranges. old and small are furnish.NewKits'.
func newRanges(dir string, mounts *os.File, c *calm, old, small bool) (*ranges, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dir))
	kits, err := furnish.NewKits(old, small)
	if err != nil {
		return nil, err
	}
	return &ranges{kits: kits, mounts: mounts, next: h.Sum32() % rangeCount, taken: map[uint32]bool{}, low: make(chan struct{}, 1), calm: c}, nil
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
		wait := r.calm.until(rangesQuiet)
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
		case !missing && wait == 0: // and so nothing else is used while it is made
			r.others()
			return 0
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
		r.others()
	}
	return 0
}

func (r *ranges) others() {
	if r.also != nil {
		_ = r.also()
	}
}

// take gives a free range, complete.
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
	u, err := r.mapped()
	if err != nil {
		return u, err
	}
	if u.kit, err = r.kits.Make(u.ns, r.mounts); err != nil {
		r.putBack(u)
		return uidRange{}, fault.Wrap(fault.Unavailable, err, "the host gives no network namespace, or no file systems").
			WithRemedy("run `sandpit doctor`; user.max_net_namespaces may be too low")
	}
	return u, nil
}

// mapped gives a range with its user namespace. Ranges that are spare or ready count
// as taken.
func (r *ranges) mapped() (uidRange, error) {
	r.mu.Lock()
	if n := len(r.spare); n > 0 {
		u := r.spare[n-1]
		r.spare = r.spare[:n-1]
		r.mu.Unlock()
		return u, nil
	}
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
	u := uidRange{base: base, ns: ns}
	u.kept, _ = ns.Stat()
	return u, nil
}

// reopen gives the user namespace again that the range had, off a process that is in it; nil
// where that is not to be had.
func (u *uidRange) reopen(pidfd *os.File) *os.File {
	const getUserNamespace = 0xff09 // PIDFD_GET_USER_NAMESPACE
	rc, err := pidfd.SyscallConn()
	if err != nil || u.kept == nil {
		return nil
	}
	var ns *os.File
	_ = rc.Control(func(fd uintptr) {
		if n, err := unix.IoctlRetInt(int(fd), getUserNamespace); err == nil {
			ns = os.NewFile(uintptr(n), "user")
		}
	})
	if ns == nil {
		return nil
	}
	if st, err := ns.Stat(); err != nil || !os.SameFile(st, u.kept) { // it maps something else
		_ = ns.Close()
		return nil
	}
	return ns
}

// reserve marks the range of a sandbox that an earlier server started.
func (r *ranges) reserve(base uint32) uidRange {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[base] = true
	return uidRange{base: base}
}

// give returns a range; none of its processes is left. What it still has of its own
// may have been used: it is let go.
func (r *ranges) give(u uidRange) {
	r.putBack(u)
	r.mu.Lock()
	r.given = min(r.given+1, haveReady)
	r.mu.Unlock()
	poke(r.low)
}

func (r *ranges) putBack(u uidRange) {
	u.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if u.ns != nil && len(r.spare)+len(r.ready) < keepSpare {
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
	for _, u := range r.ready {
		_ = u.ns.Close()
		u.close()
	}
	r.spare, r.ready = nil, nil
	_ = r.kits.Close()
}
