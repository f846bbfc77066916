// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// Group owns the engine's goroutines and the uses of it that are not over.
//
// It keeps a context, which is otherwise not done here: this one is no
// request's but the life of the goroutines themselves, and has nowhere else to be.
type Group struct {
	ctx context.Context // done when the engine ends

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// NewGroup returns a group whose goroutines get ctx, which is done when the engine ends.
func NewGroup(ctx context.Context) *Group { return &Group{ctx: ctx} }

// Enter counts one more use; Leave ends it. After Close it is fault.Unavailable.
func (g *Group) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return Stopping()
	}
	g.wg.Add(1)
	return nil
}

// Leave ends a use that Enter counted.
func (g *Group) Leave() { g.wg.Done() }

// Spawn runs fn in a goroutine of the group. The caller has entered, or is such
// a goroutine itself, so that the group cannot be empty meanwhile.
func (g *Group) Spawn(fn func(ctx context.Context)) {
	g.wg.Go(func() { fn(g.ctx) })
}

// Close lets nothing more in and waits until all are out.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
}

// Bind returns a context that ends with ctx or with the engine, for waiting that
// may be given up. Its cause is the error for the caller.
func (g *Group) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.ctx, func() { cancel(Stopping()) })
	return ctx, func() { stop(); cancel(nil) }
}

// Work runs do to its end, whatever becomes of the caller: on ctx's end Work
// returns ctx's error at once and do goes on, on a context that keeps ctx's
// values and ends after bound. If nobody took a result without error, orphaned
// (may be nil) is called with what is left of the same context; an error that nobody
// took is given to lost. Exactly one of the three happens: the caller gets the result, or
// one of them is called. The caller has entered the group.
func (g *Group) Work(ctx context.Context, bound time.Duration, do func(context.Context) error, orphaned func(context.Context), lost func(error)) error {
	result := make(chan error) // not buffered: a result is either taken or orphaned
	gone := make(chan struct{})
	g.Spawn(func(context.Context) {
		wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
		defer cancel()
		err := do(wctx)
		select {
		case result <- err:
		case <-gone:
			if err != nil {
				lost(err)
			} else if orphaned != nil {
				orphaned(wctx)
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

// Context returns the context of the group's goroutines.
func (g *Group) Context() context.Context { return g.ctx }

// Stopping returns the error of what ends because the server does.
func Stopping() *fault.Error {
	err := fault.New(fault.Unavailable, "the server is stopping")
	err.Retry = time.Second
	return err.WithRemedy("ask again when it is back; sandboxes and their commands go on running")
}
