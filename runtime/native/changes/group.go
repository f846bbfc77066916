// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

const (
	defaultMaxFiles = 1000
	defaultMemory   = 16 << 20
	defaultLinger   = 2 * time.Second

	bufferSize = 64 << 10
	// pace is how long the reader lets events gather. Each wake-up takes a core
	// from the sandbox that causes it; a Stop does not wait for the reader, but
	// reads at most what came since. Someone waits for the events of a watch.
	//
	// What gathers is merged by the kernel, and merged events of a rename tell less of what
	// it replaced (see [diff.settle]): more lists would not be complete. 5 ms save work with many
	// files 1 to 3 %.
	pace      = time.Millisecond
	watchPace = 5 * time.Millisecond
	// turn bounds the reads that the reader does before it lets others have the
	// lock: some 2,000 events, in as many microseconds.
	turn = 4
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
}

// Group is the server's one fanotify group. It is safe for concurrent use.
type Group struct {
	log      *slog.Logger
	maxFiles int
	memory   int
	linger   time.Duration
	bell     *bell // tells of events; they are read from fd, under mu
	idle     chan struct{}

	mu      sync.Mutex
	fd      int
	closed  bool
	running bool
	buf     []byte
	sources map[fsid]*Source
	watches int // of all sources
	muted   int // files of all sources
	epoch   int // counts how often all were unmuted
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
		buf:      make([]byte, bufferSize),
		sources:  make(map[fsid]*Source),
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
	if g.bell, err = newBell(fd); err != nil {
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
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	for _, s := range g.sources {
		s.dropLocked()
	}
	return errors.Join(g.bell.close(), unix.Close(g.fd))
}

// Run reads events while windows are open, so that the kernel's queue stays
// short, and takes watches away that linger. It returns nil when ctx is done or
// the group is closed. Windows work without it; then the queue grows until a
// Stop, and nothing lingers. One Run at a time.
func (g *Group) Run(ctx context.Context) error {
	g.mu.Lock()
	if g.closed || g.running {
		g.mu.Unlock()
		return fault.New(fault.State, "the group is closed or already runs")
	}
	g.running = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running = false
		g.sweepLocked(time.Now().Add(g.linger)) // nothing would take them away later
	}()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	woken := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(woken)
		g.bell.wake()
	})
	defer func() {
		<-woken // cancel ran by now
		g.bell.heal()
	}()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { g.expire(ctx) })
	defer cancel()
	return g.read(ctx)
}

// read waits for events and takes them, until ctx is done or the group closed.
func (g *Group) read(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		gather := g.pace
		if err := g.bell.wait(); err != nil {
			if ctx.Err() != nil || g.isClosed() {
				return nil
			}
			// The kernel has no room for it now. What is queued is read all the same.
			g.log.Warn("cannot wait for file events; looking for them every second", "error", err)
			gather = func() time.Duration { return time.Second }
		}
		// After the first event, too: most commands end before, and their Stop reads what they did.
		for more := true; more; {
			timer.Reset(gather())
			select {
			case <-ctx.Done():
				return nil
			case <-timer.C:
			}
			more = g.drain(ctx) > 0
		}
	}
}

func (g *Group) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// pace is how long the reader lets events gather.
func (g *Group) pace() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watches > 0 {
		return watchPace
	}
	return pace
}

// drain books what is queued, and gives how much it was.
func (g *Group) drain(ctx context.Context) (events int) {
	for empty := false; !empty && ctx.Err() == nil; {
		g.mu.Lock()
		var n int
		n, empty = g.drainLocked(turn)
		g.mu.Unlock()
		events += n
	}
	return events
}

// expire takes lingering watches away.
func (g *Group) expire(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.idle:
		}
		for again := true; again; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(g.linger / 2):
			}
			g.mu.Lock()
			again = g.sweepLocked(time.Now())
			g.mu.Unlock()
		}
	}
}

// sweepLocked takes away the watches that idle since the linger time, and tells
// whether others idle on.
func (g *Group) sweepLocked(now time.Time) (more bool) {
	for _, s := range g.sources {
		switch {
		case !s.marked || s.busyLocked():
		case now.Sub(s.idleSince) >= g.linger:
			s.unmarkLocked()
		default:
			more = true
		}
	}
	return more
}

// drainLocked books queued events, in at most turns reads, and gives how many
// events there were and whether the queue was empty at one moment.
func (g *Group) drainLocked(turns int) (events int, empty bool) {
	for range turns {
		if g.closed {
			return events, true
		}
		n, err := unix.Read(g.fd, g.buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return events, true
		case err != nil:
			g.log.Error("cannot read file events; open windows are incomplete", "error", err)
			g.loseLocked(fmt.Errorf("cannot read file events: %w", err))
			return events, true
		}
		at := time.Now()
		for b := g.buf[:n]; len(b) > 0; {
			r, rest, ok := parse(b)
			if !ok {
				g.log.Error("the kernel sent a file event that cannot be read; open windows are incomplete")
				g.loseLocked(errors.New("the kernel sent a file event that cannot be read"))
				break
			}
			b = rest
			events++
			g.bookLocked(&r, at)
		}
		// The kernel stops short of a full buffer only when the queue is empty.
		if len(g.buf)-n > maxRecord {
			return events, true
		}
	}
	return events, false
}

// drainAllLocked books everything that was queued before the call. A sandbox
// that goes on making events cannot hold it up: it takes as many as there were.
func (g *Group) drainAllLocked() {
	if _, empty := g.drainLocked(1); empty {
		return
	}
	left, err := unix.IoctlGetInt(g.fd, unix.TIOCINQ) // also named FIONREAD
	if err != nil {
		left = 1 << 30
	}
	for left > 0 { // the kernel counts a bare header for each
		n, empty := g.drainLocked(1)
		if empty {
			return
		}
		left -= n * unix.FAN_EVENT_METADATA_LEN
	}
}

func (g *Group) bookLocked(r *record, at time.Time) {
	if r.has(unix.FAN_Q_OVERFLOW) {
		g.log.Warn("the kernel dropped file events; open windows are incomplete")
		g.loseLocked(errors.New("the kernel dropped file events"))
		return
	}
	s := g.sources[r.fsid]
	if s == nil {
		return
	}
	for _, t := range s.trackers {
		t.window.apply(r)
	}
	if len(s.watches) > 0 {
		s.queueLocked(r, at)
	}
	s.hushLocked(r)
}

func (g *Group) loseLocked(reason error) {
	for _, s := range g.sources {
		for _, t := range s.trackers {
			t.window.lost.because(reason)
		}
		for _, w := range s.watches {
			w.dropped++ // how many is not known
			w.poke()
		}
	}
}
