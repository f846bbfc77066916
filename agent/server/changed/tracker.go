// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package changed

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/fault"
)

// Bounds. What goes beyond them makes answers that are not complete.
const (
	MaxEntries = 50_000                 // that one look counts
	MaxDepth   = 100                    // of directories, each of which is open while those below it are looked at
	MaxWindows = 256                    // that are open at once
	maxKept    = 6 << 20                // bytes that all windows keep together
	maxTime    = 500 * time.Millisecond // that one look takes: a command waits for it
	largeRest  = 30 * time.Second
	largeKept  = 16 // directories that are known to be too large
)

// Tracker opens windows. It is safe for concurrent use, and holds nothing while none is open but which
// directories were too large lately.
type Tracker struct {
	root dirs.Root
	seed maphash.Seed
	turn chan struct{} // held by the one look that is taken

	mu      sync.Mutex
	windows int
	kept    int                  // bytes
	large   map[string]time.Time // when a directory that was too large is looked at again
}

// New returns a tracker. It starts nothing.
func New(root dirs.Root) *Tracker {
	return &Tracker{root: root, seed: maphash.MakeSeed(), turn: make(chan struct{}, 1), large: make(map[string]time.Time)}
}

// Window is a look at a directory, to be compared with a later one. Its methods are for one goroutine.
type Window struct {
	t      *Tracker
	path   string
	was    *dir // nil: it was not looked at
	kept   int
	why    string // an answer cannot be complete
	closed bool
}

// Begin looks at the directory of an absolute path, which need not be there. A tree that cannot be
// looked at is no error: the window's answer is not complete.
func (t *Tracker) Begin(ctx context.Context, path string) (*Window, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if t.windows >= MaxWindows {
		t.mu.Unlock()
		return nil, fault.New(fault.Exhausted, "%d commands whose changed files are asked for run in this sandbox, which is the bound", MaxWindows).
			WithRemedy("wait until some have ended")
	}
	t.windows++
	again, large := t.large[path]
	if large && time.Now().After(again) {
		delete(t.large, path)
		large = false
	}
	t.mu.Unlock()
	w := &Window{t: t, path: path}
	if large {
		w.why = "the directory was too large to be looked at"
		return w, nil
	}
	l, err := t.look(ctx)
	if err == nil {
		w.was, err = l.take(path)
		t.done()
		w.kept = l.kept
	}
	if err == nil {
		err = l.settle()
	}
	if err = w.unsure(err); err != nil {
		w.Close()
		return nil, err
	}
	if w.why == "" && l.why != "" {
		w.why = l.why
	}
	return w, nil
}

// unsure notes why an answer cannot be complete; what ends the call is given back.
func (w *Window) unsure(err error) error {
	stop, is := errors.AsType[errUnsure](err)
	switch {
	case err == nil:
		return nil
	case !is:
		return err
	}
	w.why, w.was = string(stop), nil
	w.forget()
	if stop != errLarge && stop != errLong {
		return nil
	}
	t := w.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.large) >= largeKept {
		clear(t.large)
	}
	t.large[w.path] = time.Now().Add(largeRest)
	return nil
}

// End looks again, and returns what is different.
func (w *Window) End(ctx context.Context) (Changes, error) {
	if w.was == nil {
		return Changes{Why: w.why}, nil
	}
	l, err := w.t.look(ctx)
	if err != nil {
		return Changes{}, err
	}
	defer w.t.done()
	m := merge{look: l}
	err = m.compare(w.path, w.was)
	w.was = nil
	why := w.why
	if err = w.unsure(err); err != nil {
		return Changes{}, err
	}
	for _, reason := range []string{why, l.why} {
		if w.why == "" {
			w.why = reason
		}
	}
	return m.answer(w.why), nil
}

// Close frees what the window keeps. Calling it twice is fine.
func (w *Window) Close() {
	if w.closed {
		return
	}
	w.closed = true
	w.forget()
	w.t.mu.Lock()
	w.t.windows--
	w.t.mu.Unlock()
}

// forget frees what the window keeps.
func (w *Window) forget() {
	w.was = nil
	w.t.mu.Lock()
	w.t.kept -= w.kept
	w.t.mu.Unlock()
	w.kept = 0
}

// look begins a look, one at a time: it is the agent's processor time that is spent.
func (t *Tracker) look(ctx context.Context) (*look, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &look{t: t, ctx: ctx, until: time.Now().Add(maxTime)}, nil
}

func (t *Tracker) done() { <-t.turn }

// errUnsure is why a look is not taken to its end.
type errUnsure string

func (e errUnsure) Error() string { return string(e) }

const (
	errLarge errUnsure = "the directory holds too many files to be looked at"
	errLong  errUnsure = "looking at the directory took too long"
	errFull  errUnsure = "too much changes at once to keep what was there before"
)

// settle waits until the kernel's clock is past every time that was seen, a few milliseconds at most:
// a file that changes from now on gets another one.
func (l *look) settle() error {
	for end := time.Now().Add(100 * time.Millisecond); ; {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
			return errUnsure("the kernel does not tell its clock: " + err.Error())
		}
		switch {
		case now.Nano() > l.newest:
			return nil
		case time.Now().After(end):
			return errUnsure("files have times that are still to come")
		}
		select {
		case <-time.After(time.Millisecond):
		case <-l.ctx.Done():
			return l.ctx.Err()
		}
	}
}
