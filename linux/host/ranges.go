// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"hash/fnv"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/spawn"
)

// Host uids are handed out in ranges of spawn.RangeSize from FirstUID up.
const (
	FirstUID   = 1 << 20
	rangeCount = (1<<32 - 1<<16 - FirstUID) / spawn.RangeSize
	keepSpare  = 56 // most user namespaces of free ranges that are kept; a driver has some ready beside them
)

// Ranges hands out uid ranges, each with a user namespace that maps it. The range of an
// instance is its own while it is up, so that no two share an id that the kernel knows.
// It is safe for concurrent use.
type Ranges struct {
	method spawn.Method

	mu    sync.Mutex
	next  uint32
	taken map[uint32]bool // spare ones included
	spare []Range
}

// Range is spawn.RangeSize uids of the host, and the user namespace that maps them. No process
// of the server's is in that.
type Range struct {
	Base uint32
	NS   *os.File    // nil: it has none, or a process in it keeps it
	kept fs.FileInfo // whose identity NS has; nil: it is not known
}

// NewRanges returns ranges that start at a place which depends on the driver's directory, so that
// two servers on one host are unlikely to use the same. Their user namespaces are made by m.
func NewRanges(dir string, m spawn.Method) *Ranges {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dir))
	return &Ranges{method: m, next: h.Sum32() % rangeCount, taken: map[uint32]bool{}}
}

// Take returns a free range with its user namespace.
func (r *Ranges) Take() (Range, error) {
	r.mu.Lock()
	if n := len(r.spare); n > 0 {
		u := r.spare[n-1]
		r.spare = r.spare[:n-1]
		r.mu.Unlock()
		return u, nil
	}
	if len(r.taken) >= rangeCount {
		r.mu.Unlock()
		return Range{}, fault.New(fault.Exhausted, "all %d uid ranges of this host are in use", rangeCount)
	}
	var base uint32
	for {
		base = FirstUID + r.next*spawn.RangeSize
		r.next = (r.next + 1) % rangeCount
		if !r.taken[base] {
			break
		}
	}
	r.taken[base] = true
	r.mu.Unlock()

	ns, err := spawn.NewUserNS(base, r.method)
	if err != nil {
		r.mu.Lock()
		delete(r.taken, base)
		r.mu.Unlock()
		return Range{}, fault.Wrap(fault.Unavailable, err, "the host gives no user namespace").
			WithRemedy("run `sandpit doctor`; user.max_user_namespaces may be too low")
	}
	u := Range{Base: base, NS: ns}
	u.kept, _ = ns.Stat()
	return u, nil
}

// Reopen opens the user namespace again that the range had, off a process that is in it. It
// returns nil where that is not possible.
func (u *Range) Reopen(pidfd *os.File) *os.File {
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

// Reserve takes the range of an instance that an earlier server started. It may be called twice.
func (r *Ranges) Reserve(base uint32) Range {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[base] = true
	return Range{Base: base}
}

// Release returns a range of which no process is left, and takes its user namespace over.
func (r *Ranges) Release(u Range) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u.NS != nil && len(r.spare) < keepSpare {
		r.spare = append(r.spare, u)
		return
	}
	delete(r.taken, u.Base)
	if u.NS != nil {
		_ = u.NS.Close()
	}
}

// Close closes the user namespaces of ranges that are free.
func (r *Ranges) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.spare {
		_ = u.NS.Close()
	}
	r.spare = nil
}
