// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package watched

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/fault"
)

// Bounds.
const (
	MaxWatches = 32      // that are open at once
	MaxDirs    = 4096    // that are watched for all of them, those above included
	maxDepth   = 100     // of directories that are read at once
	maxEntries = 200_000 // that are looked at in one reading of a tree
	maxSeen    = 20_000  // names that are told before their event is read
	maxTodo    = 1024    // directories that could not be opened where they were made

	// renamePatience is how long the second half of a rename is waited for.
	renamePatience = 5 * time.Millisecond
	// lossRest is how long nothing is read where the kernel's queue overflowed.
	lossRest = 100 * time.Millisecond
)

// Hub is all watches of a sandbox. It is safe for concurrent use.
type Hub struct {
	root dirs.Root
	run  func(func())

	mu   sync.Mutex
	live *live // nil: no watch is open
}

// New returns a hub that starts goroutines by run, whose caller waits for them after it has closed all
// watches. It starts nothing itself.
func New(root dirs.Root, run func(func())) *Hub { return &Hub{root: root, run: run} }

// Watch begins a watch on the directory of an absolute and clean path. Close it.
func (h *Hub) Watch(ctx context.Context, dir string, recursive bool) (*Watch, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if h.live != nil && len(h.live.watches) >= MaxWatches {
		return nil, fault.New(fault.Exhausted, "%d watches are open on this sandbox, which is the bound", MaxWatches).
			WithRemedy("close one, or watch a directory above, recursively")
	}
	if h.live == nil {
		l, err := open(h.root)
		if err != nil {
			return nil, err
		}
		h.live = l
		h.run(func() { h.loop(l) })
	}
	l := h.live
	w := &Watch{h: h, l: l, dir: dir, recursive: recursive, wake: make(chan struct{}, 1)}
	l.drain()
	if err := l.begin(w); err != nil {
		l.prune()
		h.closeUnused()
		return nil, err
	}
	l.watches = append(l.watches, w)
	return w, nil
}

// closeUnused frees all where no watch is open. mu is held.
func (h *Hub) closeUnused() {
	if h.live != nil && len(h.live.watches) == 0 {
		h.live.close()
		h.live = nil
	}
}

// end ends a watch and removes it.
func (h *Hub) end(w *Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := w.l
	w.end(fault.New(fault.State, "the directory is no longer watched"))
	w.clear()
	if !slices.Contains(l.watches, w) {
		return
	}
	l.watches = slices.DeleteFunc(l.watches, func(o *Watch) bool { return o == w })
	l.leave(w)
	if l == h.live {
		h.closeUnused()
	}
	if !l.closed {
		l.prune()
	}
}

// loop reads what the kernel queues until the last watch is closed.
func (h *Hub) loop(l *live) {
	defer func() { _ = l.file.Close() }() // and with it all that it watches
	raw, err := l.file.SyscallConn()
	if err != nil {
		return
	}
	armed := false
	for {
		again := false
		err := raw.Read(func(uintptr) bool {
			for {
				h.mu.Lock()
				more := l.step()
				stop := l.closed || l.resting || l.halfway() && !armed
				h.mu.Unlock()
				if stop || !more {
					again = stop
					return stop
				}
			}
		})
		switch {
		case again:
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = l.file.SetReadDeadline(time.Time{})
			armed = false
			h.mu.Lock()
			l.drain()
			closed := l.closed
			if !closed {
				l.settle()
			}
			h.mu.Unlock()
			if closed {
				return
			}
			continue
		case err != nil:
			return
		}
		h.mu.Lock()
		closed, resting, halfway := l.closed, l.resting, l.halfway()
		h.mu.Unlock()
		switch {
		case closed:
			return
		case resting:
			select {
			case <-l.done:
				return
			case <-time.After(lossRest):
			}
			h.mu.Lock()
			if !l.closed {
				l.anew()
			}
			h.mu.Unlock()
		case halfway && !armed:
			armed = true
			_ = l.file.SetReadDeadline(time.Now().Add(renamePatience))
		}
	}
}

// live is the inotify instance and what is known by it. The hub's mu guards it.
type live struct {
	root dirs.Root
	fd   int
	file *os.File
	done chan struct{} // closed with it
	buf  []byte

	closed  bool
	watches []*Watch
	top     *node // "/"
	nodes   map[int32]*node
	pos     int64 // bytes of events that were handled
	ahead   int64 // bytes that were read and not handled
	queued  int   // bytes of events that wait for watches

	from    *half  // the first half of a rename
	renamed *whole // a rename that may be the first half of an exchange
	todo    []missed
	seen    []*node // that have names that were told before their event
	names   int     // of those
	entries int     // that the reading of a tree has looked at
	empty   int64   // when nothing was queued last, by the clock of files, in ns
	left    bool    // a directory was moved out since
	resting bool    // events were lost, and the tree is to be read anew
}

func open(root dirs.Root) (*live, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fault.Wrap(fault.Exhausted, err, "the host gives no inotify instance: all sandboxes of one Engine share what the host's root has of them").
			WithRemedy("close watches on other sandboxes, or raise the host's fs.inotify.max_user_instances")
	}
	l := &live{root: root, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), done: make(chan struct{}), buf: make([]byte, 32<<10)}
	l.clear()
	return l, nil
}

// clear forgets the tree.
func (l *live) clear() {
	l.top, l.nodes = &node{wd: none}, make(map[int32]*node)
	l.from, l.renamed, l.todo = nil, nil, nil
	l.seen, l.names = nil, 0
}

// close ends the loop, which closes the instance: a close that waits for the loop's reading would wait
// for ever, since that takes the hub's mu.
func (l *live) close() {
	l.closed = true
	close(l.done)
	_ = l.file.SetReadDeadline(time.Unix(1, 0))
}

// tail is the position behind all that the kernel has queued now.
func (l *live) tail() int64 {
	n, err := unix.IoctlGetInt(l.fd, unix.TIOCINQ)
	if err != nil {
		n = 0
	}
	return l.pos + l.ahead + int64(n)
}
