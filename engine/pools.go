// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// pools is what is made ahead of creates.
type pools struct {
	list []*pool
	wake chan struct{} // something changed

	mu      sync.Mutex
	owned   map[sandbox.ID]bool           // those without a record, from before they are made until they have one or are gone
	claimed map[sandbox.ID]*prewarm.Entry // given to a create that has not used them yet
	busy    int                           // creates at work
	last    time.Time                     // when one last was
}

func newPools() *pools {
	return &pools{wake: make(chan struct{}, 1), owned: make(map[sandbox.ID]bool), claimed: make(map[sandbox.ID]*prewarm.Entry)}
}

// openPools checks the pools of the options.
func (e *Engine) openPools(list []Pool) error {
	if len(list) > MaxPools {
		return fault.InvalidField("pools", "there are %d; at most %d can be", len(list), MaxPools)
	}
	names := make(map[string]bool)
	for _, p := range list {
		one, err := e.newPool(p)
		if err != nil {
			return err
		}
		if names[one.Name] {
			return fault.InvalidField("pools", "two are named %q", sandbox.Clip(one.Name, 40)).
				WithRemedy("give one of them another name")
		}
		names[one.Name] = true
		e.pools.list = append(e.pools.list, one)
	}
	return nil
}

func (s *pools) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *pools) own(id sandbox.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned[id] = true
}

func (s *pools) disown(id sandbox.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owned, id)
}

// owns reports whether an instance without a record has to be so.
func (s *pools) owns(id sandbox.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned[id]
}

// begin notes that a create is at work, and gives what notes that it is not.
func (s *pools) begin() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
	return func() {
		s.mu.Lock()
		s.busy--
		s.last = time.Now()
		s.mu.Unlock()
	}
}

// load says when a create was last at work, and whether one is.
func (s *pools) load() (last time.Time, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.busy > 0
}

// claim gives a new sandbox the id of a running instance of a pool, if there is one for it:
// rather one with the limits that it asks for. The caller calls unclaim once the sandbox is
// made, or was not.
func (e *Engine) claim(ctx context.Context, s *sandbox.Sandbox) {
	var same, others []*pool
	for _, p := range e.pools.list {
		switch {
		case !p.Fits(s):
		case p.Limits == s.Limits:
			same = append(same, p)
		default:
			others = append(others, p)
		}
	}
	var one *prewarm.Entry
	for _, p := range append(same, others...) {
		if one == nil {
			one = e.healthy(ctx, p, s)
			p.Count(s.Image, one != nil)
		}
	}
	if one != nil {
		s.ID = one.ID
		e.pools.mu.Lock()
		e.pools.claimed[one.ID] = one
		e.pools.mu.Unlock()
	}
	e.pools.poke()
}

// healthy takes one for s out of the pool, whose agent answers; nil if there is none.
func (e *Engine) healthy(ctx context.Context, p *pool, s *sandbox.Sandbox) *prewarm.Entry {
	for {
		one := p.Take(s)
		if one == nil {
			return nil
		}
		if one.Image.Digest == s.ImageDigest {
			// A caller that goes away meanwhile says nothing about the sandboxes of the pool.
			pctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), poolPing)
			_, err := one.Client.Ping(pctx)
			cancel()
			if err == nil {
				one.Unwatch() // the sandbox has a watcher of its own
				return one
			}
			e.log.Warn("a sandbox of a pool does not answer", "pool", p.Name, "sandbox", one.ID, "error", err)
		}
		e.group.spawn(func(ctx context.Context) { e.unstock(ctx, one) })
	}
}

// instance returns the instance of a new sandbox: the one that was claimed for it, or a new one.
func (e *Engine) instance(ctx context.Context, s *sandbox.Sandbox, spec runtime.Spec) (runtime.Instance, error) {
	e.pools.mu.Lock()
	one := e.pools.claimed[s.ID]
	delete(e.pools.claimed, s.ID)
	delete(e.pools.owned, s.ID) // it has a record
	e.pools.mu.Unlock()
	if one == nil {
		return e.runtimes[s.Runtime].Create(ctx, spec)
	}
	err := one.Become(ctx, s.Limits, spec.Hostname)
	if err == nil {
		one.Expect() // the sign of life took what was ready for the first call
		return one.Instance, nil
	}
	e.log.Warn("a sandbox of a pool cannot be made what is asked for, and is made anew", "sandbox", s.ID, "error", err)
	if err := one.Instance.Remove(ctx); err != nil {
		return nil, err
	}
	return e.runtimes[s.Runtime].Create(ctx, spec)
}

// unclaim removes what was claimed for a sandbox and not used.
func (e *Engine) unclaim(ctx context.Context, id sandbox.ID) {
	e.pools.mu.Lock()
	one := e.pools.claimed[id]
	delete(e.pools.claimed, id)
	e.pools.mu.Unlock()
	if one != nil {
		e.unstock(ctx, one)
	}
}

// announce commits the event by which an instance of a pool is known.
func (e *Engine) announce(ctx context.Context, id sandbox.ID, p *pool) error {
	ev := system.event(sandbox.EventPrepared, &sandbox.Sandbox{ID: id}, e.now())
	ev.Detail = "pool " + p.Name
	err := e.store.Update(ctx, func(tx store.Tx) error { return tx.Events().Append(ev) })
	if err == nil {
		e.metrics.Happened([]*sandbox.Event{ev})
	}
	return err
}

// fillPools begins to make what is missing in pools, removes what they have too many
// of, and says when to look again.
func (e *Engine) fillPools(ctx context.Context) time.Duration {
	wait := prewarm.Idle
	if e.store.Room() != nil {
		return wait
	}
	for _, p := range e.pools.list {
		if e.roomFor(p.Runtime) == nil {
			last, busy := e.pools.load()
			n, again := p.Due(time.Now(), last, busy)
			wait = min(wait, again)
			for range n {
				e.group.spawn(func(ctx context.Context) { e.stock(ctx, p) })
			}
		}
		for _, one := range p.Surplus(image.Image{}) {
			e.group.spawn(func(ctx context.Context) { e.unstock(ctx, one) })
		}
	}
	return wait
}

// emptyPools removes what nobody has taken, at the engine's end. A server that is
// killed leaves it, and the next one removes it.
func (e *Engine) emptyPools(ctx context.Context) {
	var wg sync.WaitGroup
	for _, p := range e.pools.list {
		for _, one := range p.TakeAll() {
			wg.Go(func() { e.unstock(ctx, one) })
		}
	}
	wg.Wait()
}
