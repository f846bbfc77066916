// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Pool is sandboxes of one kind that run before anybody asks. A create takes one of
// them if it asks for the same image, limits and runtime, and brings no disk and no
// volume; all else (its key, env, metadata, clocks) is given to it then. An empty pool
// makes a create slower, and nothing else.
type Pool struct {
	Name    string         // in figures and answers, unique; "": the image's
	Image   string         // a name of the catalogue, or another spelling of one
	Runtime string         // "": the server's default
	Limits  sandbox.Limits // zero fields take the server's defaults
	Min     int            // so many are kept ready
	Max     int            // so many at most: each create that found none adds one, each quiet minute takes one off. 0: Min
	Refill  int            // so many are made at a time; 0: 1
}

// Bounds of pools.
const (
	MaxPools    = 32
	MaxPoolSize = 1000
)

const (
	// poolQuiet is how long no create may have been at work before a pool is filled,
	// since that takes the processors from it; poolPatience is how long that is heeded
	// before each fill.
	poolQuiet    = 50 * time.Millisecond
	poolPatience = time.Second
	// poolShrink is how long a pool that has grown keeps what nobody takes.
	poolShrink = time.Minute
	// poolRetry is the pause after one that could not be made.
	poolRetry = 30 * time.Second
	// poolPing bounds the look at a ready one before a create gets it.
	poolPing = 250 * time.Millisecond
)

// pool is a Pool at work.
type pool struct {
	Pool
	figures poolFigures

	mu     sync.Mutex
	ready  []*pooled // oldest first
	making int
	target int       // how many shall be ready: Min to Max
	moved  time.Time // when target last changed, or one was taken
	short  time.Time // since when more should be made; zero: they are, or need not
	retry  time.Time // not before, after a failure
	hits   int64
	misses int64
}

// pooled is a running instance without a record. What is known of it is an event, so
// that the next server removes what this one leaves.
type pooled struct {
	id     sandbox.ID
	inst   runtime.Instance
	client *agent.Client
	img    image.Image
	leave  context.CancelFunc // ends its watcher; set before it is ready
}

// newPool checks a pool and fills in what it leaves out.
func (e *Engine) newPool(p Pool) (*pool, error) {
	entry, err := e.images.Resolve(p.Image)
	if err != nil {
		return nil, err
	}
	p.Image = entry.Name
	if p.Name == "" {
		p.Name = p.Image
	}
	if p.Runtime == "" {
		p.Runtime = e.fallback
	}
	if p.Max == 0 {
		p.Max = p.Min
	}
	p.Refill = max(p.Refill, 1)
	p.Limits = p.Limits.Or(e.defaults.Limits)
	var k check
	if e.runtimes[p.Runtime] == nil {
		k.bad("pools.runtime", "%q is no runtime of this server", sandbox.Clip(p.Runtime, 40))
	}
	if p.Min < 0 || p.Max < 1 || p.Min > p.Max || p.Max > MaxPoolSize {
		k.bad("pools", "the pool %q has min %d and max %d; want 0 ≤ min ≤ max, and max 1 to %d", sandbox.Clip(p.Name, 40), p.Min, p.Max, MaxPoolSize)
	}
	k.limits(p.Limits, e.defaults.Most)
	if err := k.err(); err != nil {
		return nil, err
	}
	return &pool{Pool: p, target: p.Min, figures: e.metrics.pool(p.Name)}, nil
}

// fits tells whether a new sandbox could be one of the pool's.
func (p *pool) fits(s *sandbox.Sandbox) bool {
	return s.Image == p.Image && s.Runtime == p.Runtime && s.Limits == p.Limits && s.Parent == "" && len(s.Mounts) == 0
}

// take takes the oldest one out; nil if there is none.
func (p *pool) take() *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ready) == 0 {
		return nil
	}
	one := p.ready[0]
	p.ready = slices.Delete(p.ready, 0, 1)
	p.figures.ready.Set(float64(len(p.ready)))
	return one
}

// drop takes a certain one out, and tells whether it was there.
func (p *pool) drop(one *pooled) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.ready, one)
	if i < 0 {
		return false
	}
	p.ready = slices.Delete(p.ready, i, i+1)
	p.figures.ready.Set(float64(len(p.ready)))
	return true
}

// count counts a create that could have been served.
func (p *pool) count(hit bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved = time.Now()
	if hit {
		p.hits++
		p.figures.hits.Inc()
		return
	}
	p.misses++
	p.figures.misses.Inc()
	p.target = min(p.target+1, p.Max)
}

// due says how many are to be made now, and when to ask again. since is when a create
// was last at work; busy, that one is.
func (p *pool) due(at, since time.Time, busy bool) (n int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target > p.Min && at.Sub(p.moved) > poolShrink {
		p.target--
		p.moved = at
	}
	missing := p.target - len(p.ready) - p.making
	switch {
	case missing <= 0:
		p.short = time.Time{}
		return 0, poolShrink
	case at.Before(p.retry):
		return 0, p.retry.Sub(at)
	case p.making >= p.Refill:
		return 0, poolShrink // whoever makes them asks again
	}
	if p.short.IsZero() {
		p.short = at
	}
	if at.Sub(p.short) < poolPatience && (busy || at.Sub(since) < poolQuiet) {
		return 0, poolQuiet
	}
	n = min(missing, p.Refill-p.making)
	p.making, p.short = p.making+n, time.Time{}
	return n, poolShrink
}

// surplus takes out what the pool has too many of, and what fits no longer since its
// image was built anew ("": nothing is known of that).
func (p *pool) surplus(digest string) []*pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*pooled
	p.ready = slices.DeleteFunc(p.ready, func(one *pooled) bool {
		old := digest != "" && one.img.Digest != digest
		if old {
			out = append(out, one)
		}
		return old
	})
	for len(p.ready) > p.target {
		out = append(out, p.ready[0])
		p.ready = slices.Delete(p.ready, 0, 1)
	}
	p.figures.ready.Set(float64(len(p.ready)))
	return out
}

// PoolInfo is how a pool stands.
type PoolInfo struct {
	Pool
	Ready  int
	Making int
	Target int // how many shall be ready now
	Hits   int64
	Misses int64
}

func (p *pool) info() PoolInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PoolInfo{Pool: p.Pool, Ready: len(p.ready), Making: p.making, Target: p.target, Hits: p.hits, Misses: p.misses}
}

// stock makes one more of the pool's, and watches it while it is there.
func (e *Engine) stock(ctx context.Context, p *pool) {
	one, err := e.stockOne(ctx, p)
	wctx, leave := context.WithCancel(ctx)
	defer leave()
	p.mu.Lock()
	p.making--
	if err != nil {
		p.retry = time.Now().Add(poolRetry)
	} else {
		one.leave = leave
		p.ready = append(p.ready, one)
		p.figures.ready.Set(float64(len(p.ready)))
	}
	p.mu.Unlock()
	e.pools.poke()
	if err != nil {
		if ctx.Err() == nil {
			e.log.Warn("a pool cannot be filled; creates are slower meanwhile", "pool", p.Name, "error", err)
		}
		return
	}
	// From here on it is watched, until somebody takes it.
	if _, err := one.inst.Wait(wctx); err == nil && p.drop(one) {
		e.log.Warn("a sandbox of a pool went down", "pool", p.Name, "sandbox", one.id)
		e.unstock(ctx, one)
		e.pools.poke()
	}
}

// stockOne is the steps of it: the intent is an event, by which the next server knows
// that what this one leaves is its own to remove.
func (e *Engine) stockOne(ctx context.Context, p *pool) (*pooled, error) {
	img, err := e.images.Ensure(ctx, p.Image)
	if err != nil {
		return nil, err
	}
	for _, old := range p.surplus(img.Digest) {
		e.unstock(ctx, old)
	}
	id := sandbox.NewID()
	e.pools.own(id)
	if err := e.announce(ctx, id, p); err != nil {
		e.pools.disown(id)
		return nil, err
	}
	e.checkpoint("pool.intent")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createBound)
	defer cancel()
	inst, err := e.runtimes[p.Runtime].Create(ctx, spec(&sandbox.Sandbox{ID: id, Limits: p.Limits}, img))
	e.checkpoint("pool.done")
	if err != nil {
		e.pools.disown(id)
		return nil, err
	}
	return &pooled{id: id, inst: inst, client: agent.NewClient(inst.Dial), img: img}, nil
}

// unstock removes one that nobody gets. What cannot be removed is the janitor's.
func (e *Engine) unstock(ctx context.Context, one *pooled) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupBound)
	defer cancel()
	one.leave()
	if err := one.inst.Remove(ctx); err != nil && !fault.Is(err, fault.NotFound) {
		e.log.Error("a sandbox of a pool cannot be removed; it is tried again", "sandbox", one.id, "error", err)
	}
	e.pools.disown(one.id)
}
