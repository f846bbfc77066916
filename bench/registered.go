// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// Registered is what a server that knows many stopped sandboxes answers, and how
// it starts.
type Registered struct {
	Listed
	Start  float64 `json:"start_ms"`
	Server float64 `json:"server_mb"` // the server's memory after its start
	// Before is the same answers on the way there, when there were fewer of them.
	Before []Listed `json:"before"`
}

// Listed is what a server answers that knows so many sandboxes.
type Listed struct {
	Sandboxes int      `json:"sandboxes"`
	List      *Figures `json:"list"`    // a page of 50, with how many there are by state
	Running   *Figures `json:"running"` // those that run, of which there is one
	Search    *Figures `json:"search"`  // that finds one of them
	Get       *Figures `json:"get"`     // one of them
}

// registeredSteps are the sizes that are measured on the way.
var registeredSteps = []int{10, 100, 1000, 10_000, 100_000}

const makers = 8 // sandboxes that are made and deleted at a time

// registered makes n sandboxes and stops them, for real, and measures. It starts
// the server again: what was measured before is not to be used any more.
func (o *ours) registered(ctx context.Context, s *server, n, times int) (_ *Registered, err error) {
	if n == 0 {
		return nil, nil
	}
	ids := make([]string, n)
	defer func() { err = errors.Join(err, o.deleteAll(context.WithoutCancel(ctx), ids)) }()
	r, made := new(Registered), 0
	for _, size := range upTo(registeredSteps, n) {
		if made > 0 {
			before, err := o.listed(ctx, ids[:made], times)
			if err != nil {
				return nil, err
			}
			r.Before = append(r.Before, before)
		}
		if err := o.register(ctx, ids[:size], made); err != nil {
			return nil, err
		}
		made = size
	}
	began := time.Now()
	if err := s.again(ctx); err != nil {
		return nil, err
	}
	r.Start = ms(time.Since(began))
	o.client, o.pid = s.client, s.cmd.Process.Pid
	_, memory, err := weigh(s)
	if err != nil {
		return nil, err
	}
	r.Server = math.Round(float64(memory)/(1<<20)*10) / 10
	r.Listed, err = o.listed(ctx, ids, times)
	return r, err
}

// register makes sandboxes from a place in ids on, and stops all but the first of ids.
func (o *ours) register(ctx context.Context, ids []string, from int) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(makers)
	for i := from; i < len(ids); i++ {
		g.Go(func() error {
			if gctx.Err() != nil {
				return gctx.Err()
			}
			box, _, err := o.client.Create(gctx, v1.CreateSandbox{Key: new(fmt.Sprintf("session-%d", i)), IdleTimeoutSeconds: new(int64(0))})
			if err != nil {
				return err
			}
			ids[i] = box.ID
			if i > 0 {
				_, err = o.client.Stop(gctx, box.ID)
			}
			return err
		})
	}
	return g.Wait()
}

// listed times answers while these sandboxes are all there are.
func (o *ours) listed(ctx context.Context, ids []string, times int) (Listed, error) {
	l := Listed{Sandboxes: len(ids)}
	one := ids[len(ids)/2]
	page := func(q client.ListQuery, want int) func() error {
		return func() error {
			p, err := o.client.ListPage(ctx, q)
			if err == nil && p.Total != want {
				err = fmt.Errorf("of %d sandboxes %d match %+v, want %d", len(ids), p.Total, q, want)
			}
			return err
		}
	}
	for _, step := range []struct {
		into **Figures
		ask  func() error
	}{
		{&l.List, page(client.ListQuery{Limit: 50}, len(ids))},
		{&l.Running, page(client.ListQuery{Limit: 50, Status: []string{"running"}}, 1)},
		{&l.Search, page(client.ListQuery{Limit: 50, Search: one}, 1)},
		{&l.Get, func() error { _, err := o.client.Get(ctx, one); return err }},
	} {
		took, err := timed(ctx, times, step.ask)
		if err != nil {
			return l, err
		}
		*step.into = took.figures()
	}
	return l, nil
}

func (r *Registered) rows(row func(name string, f *Figures)) {
	if r == nil {
		return
	}
	for _, l := range append(slices.Clone(r.Before), r.Listed) {
		row(fmt.Sprintf("list 50 of %d stopped", l.Sandboxes), l.List)
		row("list those that run", l.Running)
		row("search one", l.Search)
		row("get one", l.Get)
	}
}

func (r *Registered) lines(say func(format string, args ...any)) {
	if r != nil {
		say("with %d sandboxes registered the server starts in %.0f ms and has %.1f MB", r.Sandboxes, r.Start, r.Server)
	}
}

// deleteAll deletes sandboxes, several at a time. Empty ids are passed over.
func (o *ours) deleteAll(ctx context.Context, ids []string) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(makers)
	for _, id := range ids {
		if id != "" {
			g.Go(func() error { return o.client.Delete(gctx, id) })
		}
	}
	return g.Wait()
}
