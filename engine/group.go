// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"
)

// group owns the engine's goroutines and the uses of it that are not over.
//
// It keeps a context, which is otherwise not done here: this one is no
// request's but the life of the goroutines themselves, and has nowhere else to be.
type group struct {
	ctx context.Context // done when the engine ends

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func newGroup(ctx context.Context) *group { return &group{ctx: ctx} }

// enter counts one more use; leave ends it. After close it is fault.Unavailable.
func (g *group) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return shuttingDown()
	}
	g.wg.Add(1)
	return nil
}

func (g *group) leave() { g.wg.Done() }

// spawn runs fn in a goroutine of the group. The caller has entered, or is such
// a goroutine itself, so that the group cannot be empty meanwhile.
func (g *group) spawn(fn func(ctx context.Context)) {
	g.wg.Go(func() { fn(g.ctx) })
}

// close lets nothing more in and waits until all are out.
func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
}

// work runs do to its end, whatever becomes of the caller: on ctx's end work
// returns ctx's error at once and do goes on, on a context that keeps ctx's
// values and ends after bound. If nobody took a result without error, orphaned
// (may be nil) is called with what is left of the same context. Exactly one of
// the two happens: the caller gets the result, or orphaned is called. The
// caller has entered the group.
func (e *Engine) work(ctx context.Context, bound time.Duration, do func(context.Context) error, orphaned func(context.Context)) error {
	result := make(chan error) // not buffered: a result is either taken or orphaned
	gone := make(chan struct{})
	e.group.spawn(func(context.Context) {
		wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
		defer cancel()
		err := do(wctx)
		select {
		case result <- err:
		case <-gone:
			if err == nil && orphaned != nil {
				orphaned(wctx)
			} else if err != nil {
				e.log.Warn("a verb failed after its caller had gone", "error", err)
			}
		}
	})
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		close(gone)
		return ctx.Err()
	}
}

// bind returns a context that ends with ctx or with the engine, for waiting that
// may be given up. Its cause is the error for the caller.
func (g *group) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.ctx, func() { cancel(shuttingDown()) })
	return ctx, func() { stop(); cancel(nil) }
}

// Bounds of work that nobody waits for any more. They hold off a driver or a
// store that hangs; in health none is ever reached.
const (
	createBound    = 2 * time.Minute
	startBound     = 2 * time.Minute
	stopBound      = time.Minute // and the grace
	deleteBound    = 2 * time.Minute
	pauseBound     = time.Minute
	updateBound    = 30 * time.Second
	reconcileBound = 2 * time.Minute
	commitBound    = 30 * time.Second
)
