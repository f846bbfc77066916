// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/code"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
)

// mostCells bounds the cells that are kept for those who may read on, since each
// holds its output.
const mostCells = 32

// cells are those that run longer than the calls that began them. They are known
// to this server alone: the next one knows what they did from the sandbox's events.
type cells struct {
	mu   sync.Mutex
	kept []*cell // the oldest first
}

// cell is code that runs, with what it has shown so far.
type cell struct {
	owner  string // identity of the caller
	in     *cells // where it is kept; nil: its call waits for it
	ref    string
	began  time.Time
	cancel context.CancelCauseFunc // interrupts it, or with ErrStopping leaves it
	done   chan struct{}           // closed when it has ended; then res and err hold

	res code.Result
	err error

	mu    sync.Mutex
	start code.Start
	shown cellShown
}

// startCell runs code in a goroutine that ends with the code, or with the cell's
// cancel. Whoever cancels the cell interrupts it; the caller's going away does not.
func startCell(ctx context.Context, c *toolset.Call, ref string, r code.Request) *cell {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	x := &cell{owner: transport.Identity(c.Caller), ref: ref, began: time.Now(), cancel: cancel, done: make(chan struct{})}
	locked := func(do func()) error {
		x.mu.Lock()
		defer x.mu.Unlock()
		do()
		return nil
	}
	r.InterruptOnDisconnect = true
	go func() {
		defer close(x.done)
		defer cancel(nil)
		defer func() {
			if v := recover(); v != nil { // no guard is above this goroutine
				c.Log.ErrorContext(ctx, "a cell panicked", "panic", v, "stack", string(debug.Stack()))
				x.err = fault.New(fault.Internal, "panic: %v", v)
			}
		}()
		x.res, x.err = c.Code.RunCode(ctx, c.Caller, ref, r, &code.Sink{
			Started: func(s code.Start) error { return locked(func() { x.start = s }) },
			Stdout:  func(b []byte) error { c.Progress.Wrote(b); return locked(func() { x.shown.stdout.Add(b) }) },
			Stderr:  func(b []byte) error { c.Progress.Wrote(b); return locked(func() { x.shown.stderr.Add(b) }) },
			Result:  func(v kernel.Result) error { return locked(func() { x.shown.result(v) }) },
		})
	}()
	return x
}

// id is the cell's, empty while it has not begun.
func (x *cell) id() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.start.CellID
}

// wait waits for the end, at most so long.
func (x *cell) wait(ctx context.Context, most time.Duration) (ended bool) {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-x.done:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// ended reports whether it has.
func (x *cell) ended() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// keep takes a cell in that its call leaves. It reports whether there is room: cells
// that have ended and that nobody asked for make some.
func (cs *cells) keep(x *cell) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for i := 0; len(cs.kept) >= mostCells && i < len(cs.kept); {
		if !cs.kept[i].ended() {
			i++
			continue
		}
		cs.kept = append(cs.kept[:i:i], cs.kept[i+1:]...)
	}
	if len(cs.kept) >= mostCells {
		return false
	}
	cs.kept, x.in = append(cs.kept, x), cs
	return true
}

// find returns a caller's own cell; nil if there is none.
func (cs *cells) find(c access.Caller, id string) *cell {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, x := range cs.kept {
		if x.owner == transport.Identity(c) && id != "" && x.id() == id {
			return x
		}
	}
	return nil
}

// stop leaves all cells to the next server, and waits for their goroutines.
func (cs *cells) stop() {
	cs.mu.Lock()
	kept := cs.kept
	cs.kept = nil
	cs.mu.Unlock()
	for _, x := range kept {
		x.cancel(transport.ErrStopping)
		<-x.done
	}
}

// drop lets go of a cell, if it is kept.
func (x *cell) drop() {
	cs := x.in
	if cs == nil {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for i, k := range cs.kept {
		if k == x {
			cs.kept = append(cs.kept[:i:i], cs.kept[i+1:]...)
			return
		}
	}
}
