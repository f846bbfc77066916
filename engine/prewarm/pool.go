// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package prewarm

import (
	"cmp"
	"context"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
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
	// Template is the NAME@VERSION that Image and Limits are of, for people.
	Template string
	Off      bool // Max may be 0: it keeps none
	ByCall   bool // a call made it or changed it, so that no list replaces it
}

// Bounds of pools.
const (
	MaxPools    = 32
	MaxPoolSize = 1000
)

const (
	// ping bounds the look at a ready one before a create gets it.
	ping = 250 * time.Millisecond
	// makeBound bounds making one.
	makeBound = 2 * time.Minute
)

// pool is a Pool at work. What is known of its sandboxes is an event each, so that the next
// server removes what this one leaves.
type pool struct {
	Pool
	*Stock
	byCall bool // as Pool.ByCall began; guarded by Pools.mu
}

// newPool checks a pool and fills in what it leaves out.
func (s *Pools) newPool(p Pool) (*pool, error) {
	entry, err := s.images.Resolve(p.Image)
	if err != nil {
		return nil, err
	}
	if p.Image == "" {
		p.Name = cmp.Or(p.Name, "recent")
	} else {
		p.Image = entry.Name
	}
	p.Name = cmp.Or(p.Name, entry.Name)
	p.Runtime = cmp.Or(p.Runtime, s.core.Default)
	if p.Max == 0 {
		p.Max = p.Min
	}
	p.Refill = max(p.Refill, 1)
	p.Limits = p.Limits.Or(s.least)
	var k check.Fields
	if s.core.Runtimes[p.Runtime] == nil {
		k.Bad("pools.runtime", "%q is no runtime of this server", sandbox.Clip(p.Runtime, 40))
	}
	if p.Min < 0 || p.Max < 0 || p.Max == 0 && !p.Off || p.Min > p.Max || p.Max > MaxPoolSize || p.Refill > MaxPoolSize {
		k.Bad("pools", "the pool %q has min %d, max %d and refill %d; want 0 ≤ min ≤ max, and max and refill 1 to %d", sandbox.Clip(p.Name, 40), p.Min, p.Max, p.Refill, MaxPoolSize)
	}
	k.Limits(p.Limits, s.most)
	if err := k.Err(); err != nil {
		return nil, err
	}
	return &pool{Pool: p, byCall: p.ByCall, Stock: New(Options{
		Image: entry.Name, Recent: p.Image == "", Runtime: p.Runtime, Limits: p.Limits,
		Min: p.Min, Max: p.Max, Refill: p.Refill, Figures: s.core.Metrics.Pool(p.Name),
	})}, nil
}

// PoolInfo is how a pool stands.
type PoolInfo struct {
	Pool
	Info
	Recent bool // it follows the last creates; Image is the next one's
}

func (p *pool) info() PoolInfo {
	info := PoolInfo{p.Pool, p.Info(), p.Pool.Image == ""}
	info.Pool.Min, info.Pool.Max, info.Pool.Refill = p.size()
	info.Pool.Image = info.Next // also of a pool without an image of its own
	return info
}

// fill makes one more of the pool's, and watches it while it is there.
func (s *Pools) fill(ctx context.Context, p *pool) {
	one, err := s.make(ctx, p)
	if err != nil {
		absent := p.Pool.Image == "" && fault.Is(err, fault.NotFound) // its image is not built yet
		p.Fail(absent)
		s.poke()
		if ctx.Err() == nil && !absent {
			s.core.Log.Warn("a pool cannot be filled; creates are slower meanwhile", "pool", p.Name, "error", err)
		}
		return
	}
	wctx, unwatch := context.WithCancel(ctx)
	defer unwatch()
	one.Unwatch = unwatch
	p.Add(one)
	s.poke()
	// From here on it is watched, until somebody takes it.
	if _, err := one.Instance.Wait(wctx); err == nil && p.Drop(one) {
		s.core.Log.Warn("a sandbox of a pool went down", "pool", p.Name, "sandbox", one.ID)
		s.remove(ctx, one)
		s.poke()
	}
}

// make is the steps of it: the intent is an event, by which the next server knows
// that what this one leaves is its own to remove.
func (s *Pools) make(ctx context.Context, p *pool) (*Entry, error) {
	img, err := s.image(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, old := range p.Surplus(img) {
		s.remove(ctx, old)
	}
	box := &sandbox.Sandbox{ID: sandbox.NewID(), Limits: p.Limits}
	s.own(box.ID, use{p.Name, img.Digest})
	if _, err := s.images.FindDigest(img.Name, img.Digest); err != nil { // whoever deletes it has not seen this one
		s.disown(box.ID)
		return nil, err
	}
	ev := core.System.Event(sandbox.EventPrepared, box, s.core.Now())
	ev.Detail = "pool " + p.Name
	if err := s.core.Append(ctx, ev); err != nil {
		s.disown(box.ID)
		return nil, err
	}
	s.core.Checkpoint("pool.intent")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeBound)
	defer cancel()
	spec := core.Spec(box, img)
	spec.Renames = true
	inst, err := s.core.Runtimes[p.Runtime].Create(ctx, spec)
	s.core.Checkpoint("pool.done")
	if err != nil {
		s.disown(box.ID)
		return nil, err
	}
	return &Entry{ID: box.ID, Instance: inst, Client: agent.NewClient(inst.Dial), Image: img, Limits: p.Limits}, nil
}

// image returns the image of the one that is to be made next. One that nobody named is
// not built for that.
func (s *Pools) image(ctx context.Context, p *pool) (image.Image, error) {
	if p.Pool.Image == "" {
		return s.images.Find(ctx, p.Next())
	}
	return s.images.Ensure(ctx, p.Pool.Image)
}

// remove removes an instance that no sandbox claims. The janitor removes what remove cannot.
func (s *Pools) remove(ctx context.Context, one *Entry) {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	one.Unwatch()
	if err := one.Instance.Remove(ctx); err != nil && !fault.Is(err, fault.NotFound) {
		s.core.Log.Error("a sandbox of a pool cannot be removed; it is tried again", "sandbox", one.ID, "error", err)
	}
	s.disown(one.ID)
}
