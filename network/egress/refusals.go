// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"sync"
	"time"
)

// Bounds of what a sandbox is refused. Letting through is bounded by what is open; a refusal is
// over at once, and a program may ask for the next.
const (
	refusalsAtOnce    = 2000
	refusalsPerMinute = 30_000
)

// refusals meters what a gate refuses of one kind. While none is left the gate takes nothing
// new of that kind: it waits in the kernel, at no cost to the server. What was let through
// goes on.
type refusals struct {
	mu   sync.Mutex
	left bucket
	now  func() time.Time
}

func newRefusals() *refusals {
	return &refusals{left: bucket{left: refusalsAtOnce, at: time.Now()}, now: time.Now}
}

// spend counts a refusal, and reports whether there is time to say why: half of what there
// may be at once is for that.
func (r *refusals) spend() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill()
	r.left.left--
	return r.left.left >= refusalsAtOnce/2
}

func (r *refusals) fill() { r.left.fill(refusalsAtOnce, refusalsPerMinute, r.now()) }

// debt is how long it takes until one more may be refused.
func (r *refusals) debt() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill()
	if r.left.left >= 1 {
		return 0
	}
	return time.Duration((1 - r.left.left) * float64(time.Minute) / refusalsPerMinute)
}

// wait waits until one more may be refused; false: ctx ended first.
func (r *refusals) wait(ctx context.Context) bool {
	for {
		debt := r.debt()
		if debt <= 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(debt):
		}
	}
}
