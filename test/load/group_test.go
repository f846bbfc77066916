// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"errors"
	"sync"
)

// group runs functions, at most limit at a time, and keeps their errors.
type group struct {
	limit int

	once  sync.Once
	slots chan struct{}
	wg    sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

func (g *group) do(fn func() error) {
	g.once.Do(func() { g.slots = make(chan struct{}, g.limit) })
	g.slots <- struct{}{}
	g.wg.Go(func() {
		defer func() { <-g.slots }()
		if err := fn(); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.errs = append(g.errs, err)
		}
	})
}

// wait returns the first errors; more would say nothing new.
func (g *group) wait() error {
	g.wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.errs[:min(len(g.errs), 10)]...)
}

// failed returns the first error, if there is one by now.
func (g *group) failed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.errs) == 0 {
		return nil
	}
	return g.errs[0]
}
