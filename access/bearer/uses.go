// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// touchEvery is how often the last use of one token is written.
const touchEvery = time.Minute

// lastFlush bounds the writing at the end of Run.
const lastFlush = 2 * time.Second

// uses records when tokens were used, for Run to write.
type uses struct {
	mu      sync.Mutex
	noted   map[string]time.Time // token id → the use that was noted last
	pending map[string]time.Time // token id → not written yet
	wake    chan struct{}        // holds one token while something is pending
}

func (u *uses) init() {
	u.noted = make(map[string]time.Time)
	u.pending = make(map[string]time.Time)
	u.wake = make(chan struct{}, 1)
}

// note is on the path of every request: it writes nothing and never waits.
func (u *uses) note(id string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.noted[id]; ok && now.Sub(last) < touchEvery {
		return
	}
	if len(u.noted) >= maxCached { // forgetting costs one write too many
		clear(u.noted)
		clear(u.pending)
	}
	u.noted[id] = now
	u.pending[id] = now
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

func (u *uses) take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := u.pending
	u.pending = make(map[string]time.Time)
	return out
}

func (u *uses) putBack(pending map[string]time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, at := range pending {
		if u.pending[id].Before(at) {
			u.pending[id] = at
		}
	}
}

// Run writes the last uses of tokens until ctx is done, and then once more. It
// always returns nil: a use that cannot be written is logged and lost.
func (a *Authority) Run(ctx context.Context) error {
	for {
		select {
		case <-a.uses.wake:
			a.flush(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
			defer cancel()
			a.flush(last)
			return nil
		}
	}
}

// flush writes what is pending, in one transaction. A token that is gone from
// the store, deleted by another program perhaps, leaves the cache as well.
func (a *Authority) flush(ctx context.Context) {
	pending := a.uses.take()
	if len(pending) == 0 {
		return
	}
	var gone bool
	err := a.store.Update(ctx, func(tx store.Tx) error {
		gone = false
		for id, at := range pending {
			err := tx.Tokens().Touch(id, at)
			if fault.Is(err, fault.NotFound) {
				gone = true
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	if gone {
		a.cache.clear()
	}
	if err != nil && ctx.Err() != nil {
		a.uses.putBack(pending) // for the flush at the end
	} else if err != nil {
		a.logger.Warn("the last uses of tokens were not written", "tokens", len(pending), "err", err)
	}
}
