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
	"sandpit.dev/internal/leaktest"
)

// Idle is what sandboxes cost that have run a command and do nothing.
type Idle struct {
	Sandboxes int     `json:"sandboxes"`
	PSS       float64 `json:"pss_mb_each"`       // of their processes; shared pages by their share
	Available float64 `json:"available_mb_each"` // by which the host's available memory fell: kernel, page cache in use and the server included
	Server    float64 `json:"server_mb_each"`    // by which the server's own memory grew, part of the above
	Processes float64 `json:"processes_each"`
}

// calm is how long idle sandboxes are left alone before they are weighed: work
// that the kernel put off, and the server's, is done by then.
const calm = 2 * time.Second

// idle weighs n sandboxes.
func (o *ours) idle(ctx context.Context, s *server, n int) (_ *Idle, err error) {
	if n == 0 {
		return nil, nil
	}
	if err := sleep(ctx, calm); err != nil {
		return nil, err
	}
	freeBefore, serverBefore, err := weigh(s)
	if err != nil {
		return nil, err
	}
	ids := make([]string, n)
	defer func() {
		g, gctx := errgroup.WithContext(context.WithoutCancel(ctx))
		g.SetLimit(4)
		for _, id := range ids {
			if id != "" {
				g.Go(func() error { return o.client.Delete(gctx, id) })
			}
		}
		err = errors.Join(err, g.Wait())
	}()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i := range ids {
		g.Go(func() error {
			box, _, err := o.client.Create(gctx, v1.CreateSandbox{IdleTimeoutSeconds: new(int64(0))})
			if err != nil {
				return err
			}
			ids[i] = box.ID
			return o.exec(gctx, box.ID, byArgv)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := sleep(ctx, calm); err != nil {
		return nil, err
	}
	freeAfter, serverAfter, err := weigh(s)
	if err != nil {
		return nil, err
	}
	procs, err := s.scope().Processes()
	if err != nil {
		return nil, err
	}
	var pss int64
	alive := 0
	for _, p := range procs {
		if p.Dead {
			continue
		}
		b, err := leaktest.PSS(p.PID)
		if err != nil {
			return nil, fmt.Errorf("weigh process %d (%s): %w", p.PID, p.Name, err)
		}
		pss += b
		alive++
	}
	if alive < n {
		return nil, fmt.Errorf("%d processes are there for %d sandboxes", alive, n)
	}
	each := func(b int64) float64 { return math.Round(float64(b)/float64(n)/(1<<20)*100) / 100 }
	return &Idle{
		Sandboxes: n, PSS: each(pss), Available: each(freeBefore - freeAfter), Server: each(serverAfter - serverBefore),
		Processes: float64(alive) / float64(n),
	}, nil
}

func weigh(s *server) (free, server int64, err error) {
	if free, err = leaktest.Available(); err != nil {
		return 0, 0, err
	}
	server, err = leaktest.PSS(s.cmd.Process.Pid)
	return free, server, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
