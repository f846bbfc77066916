// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"context"
	"slices"
	"time"

	"sandpit.dev/fault"
)

// patience bounds how long an answer waits, all in all, for directories whose inode
// numbers are being given anew.
const patience = time.Second

// Tracker is one open window. End it with one [Tracker.Stop] or [Tracker.Cancel].
type Tracker struct {
	s   *Source
	dir string // relative to the overlay's root

	// guarded by s.mu until the window ended, and then its ender's alone
	window window
	ended  bool
}

// Stop ends the window and returns what changed in it. Every operation that
// finished before the call is in the answer; sizes and types are those of the
// moment of the answer. Its work grows with the changes: two system calls for
// each changed name and three for each directory with any, at most some 30,000
// names.
//
// It fails when ctx is done, where the file system cannot be asked, and with
// [fault.State] on a window that has ended. It ends the window also when it fails.
func (t *Tracker) Stop(ctx context.Context) (Changes, error) {
	if !t.end(true) {
		return Changes{}, fault.New(fault.State, "the window has ended")
	}
	if err := ctx.Err(); err != nil {
		return Changes{}, err
	}
	d := diff{w: &t.window, dir: t.dir, lower: t.s.lower, max: t.s.g.maxFiles, patience: patience}
	c, err := t.answer(ctx, &d)
	if err == nil && !c.Complete {
		t.s.g.log.DebugContext(ctx, "an answer about changed files is not complete",
			"dir", "/"+t.dir, "reason", d.whyIncomplete())
	}
	return c, err
}

func (t *Tracker) answer(ctx context.Context, d *diff) (Changes, error) {
	if len(t.window.entries) == 0 && len(t.window.touched) == 0 {
		return d.run(ctx)
	}
	conn, err := t.s.root.SyscallConn()
	if err != nil {
		d.lost.because(err)
		return Changes{}, nil // closed meanwhile: nothing is known, and Complete is false
	}
	var c Changes
	if cerr := conn.Control(func(root uintptr) {
		d.root = int(root)
		c, err = d.run(ctx)
	}); cerr != nil {
		d.lost.because(cerr)
		return Changes{}, nil
	}
	if err != nil && ctx.Err() == nil {
		err = fault.Wrap(fault.Internal, err, "cannot look at the changed files")
	}
	return c, err
}

// Cancel ends the window without an answer. It may be called after Stop.
func (t *Tracker) Cancel() { t.end(false) }

// end takes the window out of its source, and reports whether it had not ended. With read,
// all that was queued before is in the window, or the window tells that it is not.
func (t *Tracker) end(read bool) bool {
	s := t.s
	late := read && !s.g.catchUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.ended {
		return false
	}
	t.ended = true
	if s.closed {
		return true
	}
	if read {
		s.bookLocked()
	}
	if late {
		t.window.lost.because(errBehind)
	}
	s.trackers = slices.DeleteFunc(s.trackers, func(o *Tracker) bool { return o == t })
	s.restLocked()
	return true
}

// evict makes room in the window; the source's lock is held.
func (t *Tracker) evict(w *window) {
	conn, err := t.s.root.SyscallConn()
	if err != nil {
		return
	}
	// Errors leave the window full, which the answer tells.
	_ = conn.Control(func(root uintptr) {
		d := diff{w: w, root: int(root), dir: t.dir, lower: t.s.lower, max: t.s.g.maxFiles}
		d.evict()
	})
}
