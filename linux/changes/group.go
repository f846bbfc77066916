// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

const (
	defaultMaxFiles = 1000
	defaultMemory   = 16 << 20
	defaultLinger   = 2 * time.Second

	// defaultBacklog is some 16 MB of the kernel's memory, which take some 0.1 s to read.
	defaultBacklog = 64 << 10
)

// Options of a [Group]; the zero value works.
type Options struct {
	// Logger gets what no caller can be told. Nil discards it.
	Logger *slog.Logger
	// MaxFiles bounds the changes that one answer lists; 1000 where it is 0.
	MaxFiles int
	// Memory bounds, in bytes and roughly, what one window may hold; 16 MiB where
	// it is 0. It is taken only by what changes: some 700 bytes a file.
	Memory int
	// Linger is how long a sandbox stays watched after its last window, so that
	// the next command finds the watch in place; 2 s where it is 0. It needs Run.
	Linger time.Duration
	// Backlog bounds the events that wait in the kernel's queue, which all sandboxes
	// share; 65,536 where it is 0. Beyond it, the sandbox that queues the most loses
	// its own: it is not watched for a second, and told so.
	Backlog int
}

// Group is the server's one fanotify group. It is safe for concurrent use.
//
// Of its locks, a source's own is taken first, then that source's marking, then ignoring,
// then mu. Reading is taken before a source's marking and never with its lock: what one
// sandbox makes long, eviction or a slow disk, is done under its own lock alone.
type Group struct {
	log      *slog.Logger
	maxFiles int
	memory   int
	linger   time.Duration
	backlog  int    // events in the kernel's queue
	waker    *waker // of the reader, by events
	idle     chan struct{}

	maxBacklog, maxBacklogs int // the constants of these names

	// reading is held by who reads the queue, until what was read is with its sources.
	reading sync.Mutex
	fd      int // used under reading, or under the lock of a source that is not closed
	buf     []byte
	counts  map[*Source]int // of this read-out, where the queue is too long

	// ignoring keeps the count of ignored files true to the kernel's marks.
	ignoring sync.Mutex
	ignored  int // files of all sources
	epoch    int // counts how often the marks of all were flushed

	// mu is held for moments, and across no system call.
	mu      sync.Mutex
	closed  bool
	reader  *reader // nil where none runs
	sources map[fsid]*Source
	watches int       // of all sources
	unread  []*Source // got events since the reader last had them booked
	pending int       // bytes in all backlogs
}

// Open makes the group. It takes one of the host's fanotify groups (128 a user)
// and one file descriptor. It fails with [fault.Unsupported] where the kernel,
// or the process's rights, do not allow it.
func Open(o Options) (*Group, error) {
	return open(o, unix.FAN_UNLIMITED_QUEUE)
}

func open(o Options, queue uint) (*Group, error) {
	g := &Group{
		log:      o.Logger,
		maxFiles: o.MaxFiles,
		memory:   o.Memory,
		linger:   o.Linger,
		idle:     make(chan struct{}, 1),
		backlog:  o.Backlog,

		maxBacklog: maxBacklog, maxBacklogs: maxBacklogs,
		buf:     make([]byte, bufferSize),
		sources: make(map[fsid]*Source),
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if g.maxFiles <= 0 {
		g.maxFiles = defaultMaxFiles
	}
	if g.memory <= 0 {
		g.memory = defaultMemory
	}
	if g.linger <= 0 {
		g.linger = defaultLinger
	}
	if g.backlog <= 0 {
		g.backlog = defaultBacklog
	}
	const flags = unix.FAN_CLASS_NOTIF | unix.FAN_CLOEXEC | unix.FAN_NONBLOCK | unix.FAN_UNLIMITED_MARKS |
		unix.FAN_REPORT_DFID_NAME_TARGET | unix.FAN_REPORT_TID
	fd, err := unix.FanotifyInit(flags|queue, unix.O_RDONLY|unix.O_CLOEXEC)
	switch {
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL):
		return nil, fault.Wrap(fault.Unsupported, err, "changed files cannot be told: the kernel's fanotify does not report names and targets").
			WithRemedy("use Linux 5.17 or later, built with CONFIG_FANOTIFY")
	case errors.Is(err, unix.EPERM):
		return nil, fault.Wrap(fault.Unsupported, err, "changed files cannot be told: fanotify needs CAP_SYS_ADMIN on the host").
			WithRemedy("run the server as root")
	case errors.Is(err, unix.EMFILE):
		return nil, fault.Wrap(fault.Exhausted, err, "changed files cannot be told: no fanotify group or file descriptor is left").
			WithRemedy("raise fs.fanotify.max_user_groups or the limit of open files")
	case err != nil:
		return nil, fault.Wrap(fault.Unsupported, err, "changed files cannot be told: fanotify_init failed")
	}
	if g.waker, err = newWaker(fd); err != nil {
		_ = unix.Close(fd)
		return nil, fault.Wrap(fault.Exhausted, err, "changed files cannot be told: nothing can wait for the kernel's events").
			WithRemedy("raise the limit of open files")
	}
	g.fd = fd
	return g, nil
}

// Close ends the group, its sources and all their windows. Twice is fine.
func (g *Group) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	g.mu.Unlock()
	for _, s := range g.all() {
		_ = s.Close()
	}
	g.reading.Lock()
	defer g.reading.Unlock()
	err := errors.Join(g.waker.close(), unix.Close(g.fd))
	g.fd = -1
	return err
}

// isClosed reports whether Close was called.
func (g *Group) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// all returns the sources there are.
func (g *Group) all() []*Source {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.sources))
}

// sweep takes away the marks of sources that idle since the linger time, and marks again
// those whose pause is over. It reports whether others are still to come.
func (g *Group) sweep(now time.Time) (more bool) {
	for _, s := range g.all() {
		if !s.mu.TryLock() {
			more = true // its own commands keep it: later
			continue
		}
		if s.sweepLocked(now) {
			more = true
		}
		s.mu.Unlock()
	}
	return more
}
