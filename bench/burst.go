// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Burst is many who want a sandbox at the same time, on a server that keeps prewarmed sandboxes and
// on one that keeps none, in turn.
type Burst struct {
	Sandboxes int     `json:"sandboxes"` // of each crowd
	Rounds    int     `json:"rounds"`    // crowds of AtOnce; the other figures are of one
	Servers   []Crowd `json:"servers"`
}

// Crowd is what each of them waits on one server, from the moment that it asks. The
// command is argv ["/bin/true"] but for ComputeSDK's loop.
type Crowd struct {
	Prewarmed int      `json:"prewarmed"`         // sandboxes that the server keeps ready
	Alone     *Figures `json:"one_after_another"` // create → first command, one each refillEvery and more, in pairs with the other server
	AtOnce    *Figures `json:"at_once"`           // all ask in the same moment; none is deleted before all have their answer
	Last      *float64 `json:"at_once_last_ms"`   // until the last one has it: the median over rounds
	Staggered *Figures `json:"staggered"`         // one asks each 50 ms
	Compute   Compute  `json:"computesdk"`
}

const (
	crowd        = 100
	crowdRounds  = 3
	crowdEvery   = 50 * time.Millisecond
	computeEvery = 200 * time.Millisecond
	// refillEvery passes before each one alone: a server fills its pool when nobody asks.
	refillEvery = 250 * time.Millisecond
	// prewarmedBeside are far fewer than a crowd: a pool as large as the load would measure
	// a server that does nothing.
	prewarmedBeside = 16
)

// burst measures both servers. The second one lives as long as this does.
func (s *session) burst(ctx context.Context) (_ *Burst, err error) {
	beside := prewarmedBeside
	if s.o.Prewarmed > 0 {
		beside = 0
	}
	dir, err := s.place("burst")
	if err != nil {
		return nil, err
	}
	second, err := startServer(ctx, s.o.Program, dir, s.o.Images, beside, s.allow)
	if err != nil {
		return nil, fmt.Errorf("a second server: %w", err)
	}
	defer func() { err = errors.Join(err, second.close(context.WithoutCancel(ctx))) }()
	both := []*ours{s.us, {client: second.client, pid: second.cmd.Process.Pid}}
	if _, err := both[1].firstCommand(ctx, byArgv); err != nil { // waits for the image
		return nil, err
	}
	rounds := min(crowdRounds, max(1, s.o.pairs()/20))
	b := &Burst{Sandboxes: crowd, Rounds: rounds, Servers: []Crowd{{Prewarmed: s.o.Prewarmed}, {Prewarmed: beside}}}
	var alone, atOnce [2]series
	var last [2][]float64
	err = inTurn(ctx, s.o.pairs()+warmUp, func(i, side int) error {
		if err := sleep(ctx, refillEvery); err != nil {
			return err
		}
		began := time.Now()
		id, err := both[side].ready(ctx, byArgv)
		if took := time.Since(began); i >= warmUp {
			alone[side].add(took, err)
		}
		s.failed("burst, one after another", err)
		return both[side].deleteAll(ctx, []string{id})
	})
	if err != nil {
		return nil, err
	}
	err = inTurn(ctx, rounds+1, func(i, side int) error {
		times, took, err := both[side].atOnce(ctx, crowd)
		if i > 0 { // the first one opens the connections
			s.failed("burst, at once", times.failure)
			atOnce[side].join(times.series)
			last[side] = append(last[side], ms(took))
		}
		return errors.Join(err, sleep(ctx, calm)) // what was deleted is taken down, and the pool is full again
	})
	if err != nil {
		return nil, err
	}
	for side := range both {
		c := &b.Servers[side]
		c.Alone, c.AtOnce, c.Last = alone[side].figures(), atOnce[side].figures(), median(last[side])
		ids := make([]string, crowd)
		times := together(ctx, crowd, crowdEvery, func(n int) (err error) {
			ids[n], err = both[side].ready(ctx, byArgv)
			return err
		})
		s.failed("burst, staggered", times.failure)
		c.Staggered = times.figures()
		if err := errors.Join(ctx.Err(), both[side].deleteAll(ctx, ids), sleep(ctx, calm)); err != nil {
			return nil, err
		}
		if c.Compute, err = s.compute(ctx, both[side]); err != nil {
			return nil, fmt.Errorf("ComputeSDK's loop: %w", err)
		}
	}
	return b, nil
}

// place returns the path of a directory for a server of a part's own, which the end of the
// run removes with the rest.
func (s *session) place(name string) (string, error) {
	dir := filepath.Join(s.dir, name)
	return dir, os.Mkdir(dir, 0o700)
}

// failed keeps the first failure of a kind for the report.
func (s *session) failed(what string, err error) {
	if err == nil || s.told[what] {
		return
	}
	if s.told == nil {
		s.told = map[string]bool{}
	}
	s.told[what] = true
	s.out.Failures = append(s.out.Failures, fmt.Sprintf("%s: %v", what, err))
}

// inTurn runs fn for both of two sides n times; neither always runs in the other's wake.
func inTurn(ctx context.Context, n int, fn func(round, side int) error) error {
	for i := range n {
		for turn := range 2 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := fn(i, (i+turn)%2); err != nil {
				return err
			}
		}
	}
	return nil
}

// atOnce has n ask in the same moment, and gives how long until the last one was
// answered. It deletes what they got.
func (o *ours) atOnce(ctx context.Context, n int) (times crowded, last time.Duration, err error) {
	ids := make([]string, n)
	began := time.Now()
	times = together(ctx, n, 0, func(i int) (err error) {
		ids[i], err = o.ready(ctx, byArgv)
		return err
	})
	last = time.Since(began)
	return times, last, errors.Join(ctx.Err(), o.deleteAll(ctx, ids))
}

// crowded is a series with the first failure.
type crowded struct {
	series
	failure error
}

// together runs fn n times, each run in a goroutine of its own that begins every so much
// after the one before; 0: all in the same moment. It waits for all, and begins no more
// once ctx is done.
func together(ctx context.Context, n int, every time.Duration, fn func(i int) error) crowded {
	var mu sync.Mutex
	var out crowded
	var g errgroup.Group
	gate := make(chan struct{})
	for i := range n {
		if every > 0 && i > 0 && sleep(ctx, every) != nil {
			break
		}
		g.Go(func() error {
			if every == 0 {
				<-gate
			}
			began := time.Now()
			err := fn(i)
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			out.add(took, err)
			out.failure = firstOf(out.failure, err)
			return nil
		})
	}
	close(gate)
	_ = g.Wait() // no run ends with an error: it is in out
	return out
}

// join adds another's runs.
func (s *series) join(other series) {
	s.n += other.n
	s.ok = append(s.ok, other.ok...)
}

// rows of the report's table.
func (b *Burst) rows(row func(name string, f *Figures)) {
	if b == nil {
		return
	}
	for _, c := range b.Servers {
		with := fmt.Sprintf("%d prewarmed", c.Prewarmed)
		row("create → first command, in pairs, "+with, c.Alone)
		row(fmt.Sprintf("the same, %d at once, %s", b.Sandboxes, with), c.AtOnce)
		row(fmt.Sprintf("the same, one each %v, %s", crowdEvery, with), c.Staggered)
		c.Compute.rows(with, row)
	}
}

// lines of the report's text.
func (b *Burst) lines(say func(format string, args ...any)) {
	if b == nil {
		return
	}
	for _, c := range b.Servers {
		if c.Last != nil {
			say("%d at once with %d prewarmed: the last one has its answer after %.0f ms (median over %d rounds)", b.Sandboxes, c.Prewarmed, *c.Last, b.Rounds)
		}
		if c.Compute.Missing != "" {
			say("ComputeSDK's loop with %d prewarmed: %s", c.Prewarmed, c.Compute.Missing)
		}
	}
}
