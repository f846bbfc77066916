// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// MaxFollowers is how many follow one process at a time, a terminal's clients among them: what
// the process writes is read and sent once for each.
const MaxFollowers = 16

const (
	// audienceRate is how many bytes a second the followers of a sandbox's processes get
	// together, where there is more than one: agent and server read and send them for each.
	// audienceAhead is what they get at once.
	audienceRate  = 8 << 20
	audienceAhead = 1 << 20
	// frameCost is what a frame costs beside its bytes, as bytes.
	frameCost = 8 << 10
)

// listen counts a follower of a process, and refuses one too many unless it is the engine's
// own; unlisten takes it off.
func (b *entry) listen(processID string, own bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard[processID] >= MaxFollowers && !own {
		err := fault.New(fault.Exhausted, "%d clients follow the process %s already, which is the most", MaxFollowers, processID)
		err.Retry = time.Second
		return err.WithRemedy("end one of them, or follow it once and hand its output on")
	}
	if b.heard == nil {
		b.heard = make(map[string]int)
	}
	b.heard[processID]++
	if !own {
		b.listeners++
	}
	if b.listeners > 1 && b.audience == nil {
		b.audience = rate.NewLimiter(audienceRate, audienceAhead)
	}
	return nil
}

func (b *entry) unlisten(processID string, own bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !own {
		b.listeners--
	}
	if b.heard[processID]--; b.heard[processID] == 0 {
		delete(b.heard, processID)
	}
}

// shared returns give, slowed to the rate that all followers of the sandbox have together.
func (g *Following) shared(ctx context.Context, give func(sandbox.Frame) error) func(sandbox.Frame) error {
	if g.own {
		return give
	}
	return func(fr sandbox.Frame) error {
		if err := g.f.u.b.shareOut(ctx, frameCost+len(fr.Data)); err != nil {
			return err
		}
		return give(fr)
	}
}

// shareOut waits until one of several followers may have n bytes more.
func (b *entry) shareOut(ctx context.Context, n int) error {
	b.mu.Lock()
	limit := b.audience
	if b.listeners < 2 {
		limit = nil
	}
	b.mu.Unlock()
	if limit == nil {
		return nil
	}
	wait := limit.ReserveN(time.Now(), min(n, audienceAhead)).Delay()
	if wait == 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
