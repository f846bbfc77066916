// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// Pool is sandboxes that run before anybody asks. A create takes one of them if it asks for
// the same image and runtime, and brings no disk and no volume; all else (its limits, key,
// env, metadata, clocks) is given to it then. An empty pool makes a create slower, and
// nothing else.
type Pool struct {
	Name string // in figures and answers, unique; "": the image's, or "recent"
	// Image is a name of the catalogue, or another spelling of one. "": the images that the
	// last creates asked for, as far as they are built; before the first one, the default image.
	Image   string
	Runtime string         // "": the server's default
	Limits  sandbox.Limits // to begin with; zero fields take the server's defaults
	Min     int            // so many are kept ready
	Max     int            // so many at most: each create that found none adds one, each quiet minute takes one off. 0: Min
	Refill  int            // so many are made at a time; 0: 1
}

// Bounds of pools.
const (
	MaxPools    = 32
	MaxPoolSize = 1000
)

// poolPing bounds the look at a ready one before a create gets it.
const poolPing = 250 * time.Millisecond

// pool is a Pool at work. What is known of its sandboxes is an event each, so that the next
// server removes what this one leaves.
type pool struct {
	Pool
	*prewarm.Stock
}

// newPool checks a pool and fills in what it leaves out.
func (e *Engine) newPool(p Pool) (*pool, error) {
	entry, err := e.images.Resolve(p.Image)
	if err != nil {
		return nil, err
	}
	if p.Image == "" {
		p.Name = cmp.Or(p.Name, "recent")
	} else {
		p.Image = entry.Name
	}
	p.Name = cmp.Or(p.Name, entry.Name)
	if p.Runtime == "" {
		p.Runtime = e.fallback
	}
	if p.Max == 0 {
		p.Max = p.Min
	}
	p.Refill = max(p.Refill, 1)
	p.Limits = p.Limits.Or(e.defaults.Limits)
	var k check.Fields
	if e.runtimes[p.Runtime] == nil {
		k.Bad("pools.runtime", "%q is no runtime of this server", sandbox.Clip(p.Runtime, 40))
	}
	if p.Min < 0 || p.Max < 1 || p.Min > p.Max || p.Max > MaxPoolSize {
		k.Bad("pools", "the pool %q has min %d and max %d; want 0 ≤ min ≤ max, and max 1 to %d", sandbox.Clip(p.Name, 40), p.Min, p.Max, MaxPoolSize)
	}
	k.Limits(p.Limits, e.defaults.Most)
	if err := k.Err(); err != nil {
		return nil, err
	}
	return &pool{p, prewarm.New(prewarm.Options{
		Image: entry.Name, Recent: p.Image == "", Runtime: p.Runtime, Limits: p.Limits,
		Min: p.Min, Max: p.Max, Refill: p.Refill, Figures: e.metrics.Pool(p.Name),
	})}, nil
}

// PoolInfo is how a pool stands.
type PoolInfo struct {
	Pool
	prewarm.Info
}

func (p *pool) info() PoolInfo {
	info := PoolInfo{p.Pool, p.Info()}
	info.Pool.Image = info.Next // also of a pool without an image of its own
	return info
}

// stock makes one more of the pool's, and watches it while it is there.
func (e *Engine) stock(ctx context.Context, p *pool) {
	one, err := e.stockOne(ctx, p)
	if err != nil {
		absent := p.Pool.Image == "" && fault.Is(err, fault.NotFound) // its image is not built yet
		p.Fail(absent)
		e.pools.poke()
		if ctx.Err() == nil && !absent {
			e.log.Warn("a pool cannot be filled; creates are slower meanwhile", "pool", p.Name, "error", err)
		}
		return
	}
	wctx, unwatch := context.WithCancel(ctx)
	defer unwatch()
	one.Unwatch = unwatch
	p.Add(one)
	e.pools.poke()
	// From here on it is watched, until somebody takes it.
	if _, err := one.Instance.Wait(wctx); err == nil && p.Drop(one) {
		e.log.Warn("a sandbox of a pool went down", "pool", p.Name, "sandbox", one.ID)
		e.unstock(ctx, one)
		e.pools.poke()
	}
}

// stockOne is the steps of it: the intent is an event, by which the next server knows
// that what this one leaves is its own to remove.
func (e *Engine) stockOne(ctx context.Context, p *pool) (*prewarm.Entry, error) {
	img, err := e.poolImage(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, old := range p.Surplus(img) {
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
	return &prewarm.Entry{ID: id, Instance: inst, Client: agent.NewClient(inst.Dial), Image: img, Limits: p.Limits}, nil
}

// poolImage returns the image of the one that is to be made next. One that nobody named is
// not built for that.
func (e *Engine) poolImage(ctx context.Context, p *pool) (image.Image, error) {
	if p.Pool.Image == "" {
		return e.images.Find(ctx, p.Next())
	}
	return e.images.Ensure(ctx, p.Pool.Image)
}

// unstock removes one that nobody gets. What cannot be removed is the janitor's.
func (e *Engine) unstock(ctx context.Context, one *prewarm.Entry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupBound)
	defer cancel()
	one.Unwatch()
	if err := one.Instance.Remove(ctx); err != nil && !fault.Is(err, fault.NotFound) {
		e.log.Error("a sandbox of a pool cannot be removed; it is tried again", "sandbox", one.ID, "error", err)
	}
	e.pools.disown(one.ID)
}
