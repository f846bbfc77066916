// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// Registered is what a server that knows many stopped sandboxes answers, and how
// it starts.
type Registered struct {
	Sandboxes int      `json:"sandboxes"`
	List      *Figures `json:"list"`    // a page of 50, with how many there are by state
	Running   *Figures `json:"running"` // those that run, of which there is one
	Search    *Figures `json:"search"`  // that finds one of them
	Start     float64  `json:"start_ms"`
	Server    float64  `json:"server_mb"` // the server's memory after its start
}

const makers = 8 // sandboxes that are made and deleted at a time

// registered makes n sandboxes and stops them, for real, and measures. It starts
// the server again: what was measured before is not to be used any more.
func (o *ours) registered(ctx context.Context, s *server, n, times int) (_ *Registered, err error) {
	if n == 0 {
		return nil, nil
	}
	ids := make([]string, n)
	defer func() { err = errors.Join(err, o.deleteAll(context.WithoutCancel(ctx), ids)) }()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(makers)
	for i := range ids {
		g.Go(func() error {
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
	if err := g.Wait(); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := s.again(ctx); err != nil {
		return nil, err
	}
	r := &Registered{Sandboxes: n, Start: ms(time.Since(began))}
	o.client, o.pid = s.client, s.cmd.Process.Pid
	_, memory, err := weigh(s)
	if err != nil {
		return nil, err
	}
	r.Server = math.Round(float64(memory)/(1<<20)*10) / 10
	for _, step := range []struct {
		into **Figures
		q    client.ListQuery
		want int
	}{
		{&r.List, client.ListQuery{Limit: 50}, n},
		{&r.Running, client.ListQuery{Limit: 50, Status: []string{"running"}}, 1},
		{&r.Search, client.ListQuery{Limit: 50, Search: ids[n/2]}, 1},
	} {
		took, err := timed(ctx, times, func() error {
			p, err := o.client.ListPage(ctx, step.q)
			if err == nil && p.Total != step.want {
				err = fmt.Errorf("of %d sandboxes %d match %+v, want %d", n, p.Total, step.q, step.want)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		*step.into = took.figures()
	}
	return r, nil
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
