// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"time"
)

const (
	// paceAhead is what a project may take at once that took nothing for a while: as much as
	// it may take in so long.
	paceAhead = time.Second
	// maxPaid is how many projects are remembered before those are forgotten that owe nothing.
	maxPaid = 1024
)

// pace charges a project for n bytes, and returns once its earlier bytes are paid for: encoding
// takes the server's time, in which other projects' commands wait. A charge stays, whatever
// happens to the request.
func (b *Budget) pace(ctx context.Context, project string, n int64) error {
	wait, err := b.charge(project, n, time.Now())
	if err != nil || wait <= 0 {
		return err
	}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.pacing[project]--; b.pacing[project] == 0 {
			delete(b.pacing, project)
		}
	}()
	return sleep(ctx, wait)
}

// sleep returns after d, or earlier with ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// charge returns how long the project has to wait. One that waits counts in b.pacing.
func (b *Budget) charge(project string, n int64, now time.Time) (time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.owedLocked(project, now)
	if wait > b.wait || wait > 0 && b.pacing[project] >= b.waiting {
		return 0, b.refusal()
	}
	b.chargeLocked(project, n, now)
	if wait > 0 {
		b.pacing[project]++
	}
	return wait, nil
}

// owe charges the project, and returns how long it has to wait, however long that is.
func (b *Budget) owe(project string, n int64, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.owedLocked(project, now)
	b.chargeLocked(project, n, now)
	return wait
}

// owedLocked returns how long the project has to wait for what it took so far; zero or less: it has not.
func (b *Budget) owedLocked(project string, now time.Time) time.Duration {
	paid := b.paid[project]
	if paid.Before(now) {
		paid = now
	}
	return paid.Sub(now) - paceAhead
}

func (b *Budget) chargeLocked(project string, n int64, now time.Time) {
	paid := b.paid[project]
	if paid.Before(now) {
		paid = now
	}
	if len(b.paid) >= maxPaid {
		for project, until := range b.paid {
			if !until.After(now) {
				delete(b.paid, project)
			}
		}
	}
	b.paid[project] = paid.Add(time.Duration(float64(n) / float64(b.rate) * float64(time.Second)))
}
