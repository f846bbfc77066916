// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sandpit.dev/fault"
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

// Audience counts the followers of the processes of one sandbox. The zero value has none. It is safe
// for concurrent use.
type Audience struct {
	mu    sync.Mutex
	heard map[string]int // followers, by process
	// others are all of those but the engine's own, and pace what they get together; nil: there was one at most.
	others int
	pace   *rate.Limiter
}

// Join counts a follower of a process, and refuses one too many unless it is the engine's
// own; Leave takes it off.
func (a *Audience) Join(processID string, own bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.heard[processID] >= MaxFollowers && !own {
		err := fault.New(fault.Exhausted, "%d clients follow the process %s already, which is the most", MaxFollowers, processID)
		err.Retry = time.Second
		return err.WithRemedy("end one of them, or follow it once and hand its output on")
	}
	if a.heard == nil {
		a.heard = make(map[string]int)
	}
	a.heard[processID]++
	if !own {
		a.others++
	}
	if a.others > 1 && a.pace == nil {
		a.pace = rate.NewLimiter(audienceRate, audienceAhead)
	}
	return nil
}

// Leave undoes a Join.
func (a *Audience) Leave(processID string, own bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !own {
		a.others--
	}
	if a.heard[processID]--; a.heard[processID] == 0 {
		delete(a.heard, processID)
	}
}

// Wait waits until one of several followers may have a frame of n bytes more.
func (a *Audience) Wait(ctx context.Context, n int) error {
	a.mu.Lock()
	pace := a.pace
	if a.others < 2 {
		pace = nil
	}
	a.mu.Unlock()
	if pace == nil {
		return nil
	}
	wait := pace.ReserveN(time.Now(), min(frameCost+n, audienceAhead)).Delay()
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
