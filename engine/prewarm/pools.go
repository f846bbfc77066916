// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package prewarm

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Images is what pools need of the images.
type Images interface {
	Resolve(name string) (image.Entry, error)
	Ensure(ctx context.Context, name string) (image.Image, error)
	Find(ctx context.Context, name string) (image.Image, error)
	FindDigest(name, digest string) (image.Image, error)
}

// Pools makes sandboxes ahead of creates. It is safe for concurrent use.
type Pools struct {
	core   *core.Core
	images Images
	wake   chan struct{} // something changed
	least  sandbox.Limits
	most   sandbox.Limits

	changing sync.Mutex // held by a Change

	mu      sync.Mutex
	list    []*pool               // replaced, and never changed
	retired []*pool               // of other images or limits, until they are empty
	owned   map[sandbox.ID]use    // those without a record, from before they are made until they have one or are gone
	claimed map[sandbox.ID]*Entry // given to a create that has not used them yet
	off     bool                  // none is kept ready
	busy    int                   // creates at work
	last    time.Time             // when one last was
}

// Open checks pools, whose limits are least where they name none and at most most, and makes
// nothing yet: see Fill.
func Open(c *core.Core, images Images, list []Pool, least, most sandbox.Limits) (s *Pools, err error) {
	s = &Pools{core: c, images: images, least: least, most: most, wake: make(chan struct{}, 1), owned: make(map[sandbox.ID]use), claimed: make(map[sandbox.ID]*Entry)}
	s.list, err = s.listed(list)
	return s, err
}

// listed returns the pools of a list, checked.
func (s *Pools) listed(list []Pool) (all []*pool, err error) {
	if len(list) > MaxPools {
		return nil, fault.InvalidField("pools", "there are %d; at most %d can be", len(list), MaxPools)
	}
	for _, p := range list {
		one, err := s.newPool(p)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o *pool) bool { return o.Name == one.Name }) {
			return nil, fault.InvalidField("pools", "two are named %q", sandbox.Clip(one.Name, 40)).
				WithRemedy("give one of them another name")
		}
		all = append(all, one)
	}
	return all, nil
}

// Info returns how each pool stands.
func (s *Pools) Info() []PoolInfo {
	var all []PoolInfo
	on := s.Enabled()
	for _, p := range s.pools() {
		one := p.info()
		if !on {
			one.Target = 0
		}
		all = append(all, one)
	}
	return all
}

// Enable says whether pools keep sandboxes ready. Where they do not, what is ready is removed, and what is being made
// once it is; their sizes stay for when they do again.
func (s *Pools) Enable(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = !on
	s.poke()
}

// Enabled reports whether pools keep sandboxes ready.
func (s *Pools) Enabled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.off
}

// Changed receives a value when Fill is to be called again.
func (s *Pools) Changed() <-chan struct{} { return s.wake }

func (s *Pools) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// use is what a pool's sandbox is of.
type use struct{ pool, digest string }

func (s *Pools) own(id sandbox.ID, u use) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned[id] = u
}

// Using returns how many sandboxes without a record each pool has of a build of an image, those
// that are being made included.
func (s *Pools) Using(digest string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := make(map[string]int)
	for _, u := range s.owned {
		if u.digest == digest {
			n[u.pool]++
		}
	}
	return n
}

// Drop removes the ready ones of a build of an image. Those that are being made are not ready.
func (s *Pools) Drop(ctx context.Context, digest string) {
	var wg sync.WaitGroup
	for _, p := range s.all() {
		for _, one := range p.TakeBuild(digest) {
			wg.Go(func() { s.remove(ctx, one) })
		}
	}
	wg.Wait()
}

func (s *Pools) disown(id sandbox.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owned, id)
}

// Owns reports whether an instance without a record has to be so.
func (s *Pools) Owns(id sandbox.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.owned[id]
	return ok
}

// Begin notes that a create is at work, until done.
func (s *Pools) Begin() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy--
		s.last = time.Now()
	}
}

// load says when a create was last at work, and whether one is.
func (s *Pools) load() (last time.Time, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.busy > 0
}

// Claim sets the id of a new sandbox to that of a running instance of a pool, if there is one:
// rather one with the limits that are asked for. Its agent is told the account, where that is not nil, instead of being
// asked for a sign of life. The caller calls Unclaim once the sandbox is made, or was not.
func (s *Pools) Claim(ctx context.Context, box *sandbox.Sandbox, account *runtime.Account) {
	var same, others []*pool
	for _, p := range s.pools() {
		switch {
		case !p.Fits(box):
		case p.Limits == box.Limits:
			same = append(same, p)
		default:
			others = append(others, p)
		}
	}
	var one *Entry
	for _, p := range append(same, others...) {
		if one == nil {
			one = s.healthy(ctx, p, box, account)
			p.Count(box.Image, one != nil)
		}
	}
	if one != nil {
		box.ID = one.ID
		s.mu.Lock()
		s.claimed[one.ID] = one
		s.mu.Unlock()
	}
	s.poke()
}

// healthy takes one whose agent answers out of the pool, for box, or returns nil if there is none.
func (s *Pools) healthy(ctx context.Context, p *pool, box *sandbox.Sandbox, account *runtime.Account) *Entry {
	for {
		one := p.Take(box)
		if one == nil {
			return nil
		}
		if one.Image.Digest == box.ImageDigest {
			// A caller that goes away meanwhile says nothing about the sandboxes of the pool.
			pctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ping)
			err := one.greet(pctx, account)
			cancel()
			if err == nil {
				one.Unwatch() // the sandbox has a watcher of its own
				return one
			}
			s.core.Log.Warn("a sandbox of a pool does not answer", "pool", p.Name, "sandbox", one.ID, "error", err)
		}
		s.core.Spawn(func(ctx context.Context) { s.remove(ctx, one) })
	}
}

// take returns what was claimed for a sandbox; nil if nothing was, or it is taken.
func (s *Pools) take(id sandbox.ID) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.claimed[id]
	delete(s.claimed, id)
	return one
}

// Instance returns the instance of a new sandbox, which has a record: the one that was claimed for
// it, or a new one.
func (s *Pools) Instance(ctx context.Context, box *sandbox.Sandbox, spec runtime.Spec) (runtime.Instance, error) {
	one := s.take(box.ID)
	s.disown(box.ID)
	if one == nil {
		return s.core.Runtimes[box.Runtime].Create(ctx, spec)
	}
	err := one.Become(ctx, box.Limits, spec.Hostname)
	if err == nil {
		one.Expect() // the sign of life took what was ready for the first call
		return one.Instance, nil
	}
	s.core.Log.Warn("a sandbox of a pool cannot be made what is asked for, and is made anew", "sandbox", box.ID, "error", err)
	if err := one.Instance.Remove(ctx); err != nil {
		return nil, err
	}
	return s.core.Runtimes[box.Runtime].Create(ctx, spec)
}

// Unclaim removes what was claimed for a sandbox and not used.
func (s *Pools) Unclaim(ctx context.Context, id sandbox.ID) {
	if one := s.take(id); one != nil {
		s.remove(ctx, one)
	}
}

// Fill begins to make what is missing in pools, removes what they have too many
// of, and says when to look again.
func (s *Pools) Fill() time.Duration {
	wait := Idle
	if !s.Enabled() {
		for _, p := range s.all() {
			for _, one := range p.TakeAll() {
				s.core.Spawn(func(ctx context.Context) { s.remove(ctx, one) })
			}
		}
		return wait
	}
	if s.core.Store.Room() != nil {
		return wait
	}
	for _, p := range s.all() {
		if s.core.RoomFor(p.Runtime) == nil {
			last, busy := s.load()
			n, again := p.Due(time.Now(), last, busy)
			wait = min(wait, again)
			for range n {
				s.core.Spawn(func(ctx context.Context) { s.fill(ctx, p) })
			}
		}
		for _, one := range p.Surplus(image.Image{}) {
			s.core.Spawn(func(ctx context.Context) { s.remove(ctx, one) })
		}
	}
	return wait
}

// Empty removes what nobody has taken, at the engine's end. A server that is
// killed leaves it, and the next one removes it.
func (s *Pools) Empty(ctx context.Context) {
	var wg sync.WaitGroup
	for _, p := range s.all() {
		for _, one := range p.TakeAll() {
			wg.Go(func() { s.remove(ctx, one) })
		}
	}
	wg.Wait()
}
