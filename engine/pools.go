// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"

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
	owned   map[sandbox.ID]bool    // those without a record, from before they are made until they have one or are gone
	claimed map[sandbox.ID]*pooled // given to a create that has not used them yet
	busy    int                    // creates at work
	last    time.Time              // when one last was
}

func newPools() *pools {
	return &pools{wake: make(chan struct{}, 1), owned: make(map[sandbox.ID]bool), claimed: make(map[sandbox.ID]*pooled)}
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

// owns tells whether an instance without a record has to be so.
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

// prepare gives a new sandbox the id of what is prepared for it, if anything is: a
// running instance of a pool, or what the driver has made ahead. The caller calls
// unclaim once it is made, or was not.
func (e *Engine) prepare(ctx context.Context, s *sandbox.Sandbox, img image.Image) {
	for _, p := range e.pools.list {
		if !p.fits(s) {
			continue
		}
		one := e.healthy(ctx, p, s.ImageDigest)
		p.count(one != nil)
		e.pools.poke()
		if one != nil {
			s.ID = one.id
			e.pools.mu.Lock()
			e.pools.claimed[one.id] = one
			e.pools.mu.Unlock()
			return
		}
		break
	}
	if d, ok := e.runtimes[s.Runtime].(runtime.Preparer); ok {
		if id, ok := d.Prepared(whole(s, img)); ok {
			s.ID = id
		}
	}
}

// healthy takes one out of the pool whose agent answers; nil if there is none.
func (e *Engine) healthy(ctx context.Context, p *pool, digest string) *pooled {
	for {
		one := p.take()
		if one == nil {
			return nil
		}
		if one.img.Digest == digest {
			pctx, cancel := context.WithTimeout(ctx, poolPing)
			_, err := one.client.Ping(pctx)
			cancel()
			if err == nil {
				one.leave() // the sandbox has a watcher of its own
				return one
			}
			e.log.Warn("a sandbox of a pool does not answer", "pool", p.Name, "sandbox", one.id, "error", err)
		}
		e.group.spawn(func(ctx context.Context) { e.unstock(ctx, one) })
	}
}

// instance gives a new sandbox its instance: the one that was claimed for it, or a
// new one.
func (e *Engine) instance(ctx context.Context, s *sandbox.Sandbox, spec runtime.Spec) (runtime.Instance, error) {
	e.pools.mu.Lock()
	one := e.pools.claimed[s.ID]
	delete(e.pools.claimed, s.ID)
	delete(e.pools.owned, s.ID) // it has a record
	e.pools.mu.Unlock()
	if one != nil {
		return one.inst, nil
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
		e.metrics.happened([]*sandbox.Event{ev})
	}
	return err
}

// fillPools begins to make what is missing in pools, removes what they have too many
// of, and says when to look again.
func (e *Engine) fillPools(ctx context.Context) time.Duration {
	wait := poolShrink
	if e.store.Room() != nil {
		return wait
	}
	for _, p := range e.pools.list {
		last, busy := e.pools.load()
		n, again := p.due(time.Now(), last, busy)
		wait = min(wait, again)
		for range n {
			e.group.spawn(func(ctx context.Context) { e.stock(ctx, p) })
		}
		for _, one := range p.surplus("") {
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
		for one := p.take(); one != nil; one = p.take() {
			wg.Go(func() { e.unstock(ctx, one) })
		}
	}
	wg.Wait()
}
