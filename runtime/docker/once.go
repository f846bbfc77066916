// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"sync"
)

// once does something until it has worked. The zero value is ready.
type once struct {
	mu   chanLock
	done bool // guarded by mu
}

// do runs fn unless an earlier one worked. Who comes meanwhile waits for it.
func (o *once) do(ctx context.Context, fn func() error) error {
	if err := o.mu.lock(ctx); err != nil {
		return err
	}
	defer o.mu.unlock()
	if o.done {
		return nil
	}
	err := fn()
	o.done = err == nil
	return err
}

// chanLock is a lock that a caller can stop waiting for.
type chanLock struct {
	make sync.Once
	ch   chan struct{}
}

func (l *chanLock) lock(ctx context.Context) error {
	l.make.Do(func() { l.ch = make(chan struct{}, 1) })
	select {
	case l.ch <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *chanLock) unlock() { <-l.ch }
