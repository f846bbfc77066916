// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// DockerAlive is sandboxes on an Engine that are alive at the same time, beside as many of its own containers that only wait.
type DockerAlive struct {
	Asked  int      `json:"asked"`
	Alive  int      `json:"alive"`
	Create *Figures `json:"create_first_command"` // several at a time
	Exec   *Figures `json:"exec"`                 // one in each of them, one after the other
	AtOnce *Figures `json:"exec_at_once"`         // one in each of them, all in the same moment
	Ours   Weight   `json:"sandpit"`
	Theirs Weight   `json:"docker"`
	Server float64  `json:"server_mb_each"` // by which the server's own memory (PSS) grew for each
}

// Weight is what one of many has the host hold, the mean.
type Weight struct {
	Available float64 `json:"available_mb_each"` // by which the host's available memory fell
	Engine    float64 `json:"engine_mb_each"`    // by which the resident set of the Engine's processes grew, its shims included
}

// MadeAtATime is how many of them are made at a time.
const MadeAtATime = densityMake

func (s *session) dockerAlive(ctx context.Context, e *engine, n int) (_ *DockerAlive, err error) {
	if n == 0 {
		return nil, nil
	}
	us, err := s.startDockerServer(ctx, e, "alive", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, us.close(ctx)) }()
	r := &DockerAlive{Asked: n}
	if r.Ours, err = e.weighed(ctx, us.server, n, func() error { return s.alive(ctx, us, n, r) }); err != nil {
		return nil, err
	}
	if r.Theirs, err = s.aliveContainers(ctx, e, us.server, n); err != nil {
		return nil, err
	}
	return r, nil
}

// weighed says what each of n things weighs that fn makes.
func (e *engine) weighed(ctx context.Context, s *server, n int, fn func() error) (w Weight, err error) {
	now := func() (available, engine float64, err error) {
		if err := sleep(ctx, e.rest); err != nil {
			return 0, 0, err
		}
		free, _, err := weigh(s)
		if err != nil {
			return 0, 0, err
		}
		engine, _, err = e.heldNow()
		return float64(free) / (1 << 20), engine, err
	}
	available, engine, err := now()
	if err != nil {
		return w, err
	}
	if err := fn(); err != nil {
		return w, err
	}
	availableAfter, engineAfter, err := now()
	return Weight{hundredths((available - availableAfter) / float64(n)), hundredths((engineAfter - engine) / float64(n))}, err
}

// alive makes n sandboxes, which the server's end deletes, and runs commands in them.
func (s *session) alive(ctx context.Context, us *dockerServer, n int, r *DockerAlive) error {
	_, before, err := weigh(us.server)
	if err != nil {
		return err
	}
	ids := make([]string, n)
	var mu sync.Mutex
	var made series
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(densityMake)
	for i := range ids {
		g.Go(func() error {
			if gctx.Err() != nil {
				return gctx.Err()
			}
			began := time.Now()
			a, err := us.client.CreateExec(gctx, v1.CreateExec{Sandbox: v1.CreateSandbox{IdleTimeoutSeconds: new(int64(0))}, Exec: byArgv})
			took := time.Since(began)
			if err == nil {
				ids[i] = a.SandboxID
				err = ended(&a.ExecOutcome)
			}
			mu.Lock()
			defer mu.Unlock()
			made.add(took, err)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r.Create = made.figures()
	i := 0
	each, err := timed(ctx, n, func() error {
		i++
		return us.exec(ctx, ids[i-1], byArgv)
	})
	if err != nil {
		return err
	}
	all := together(ctx, n, 0, func(i int) error { return us.exec(ctx, ids[i], byArgv) })
	s.failed("commands in all at once", all.failure)
	r.Exec, r.AtOnce = each.figures(), all.figures()
	for _, id := range ids {
		box, err := us.client.Get(ctx, id)
		if err != nil {
			return err
		}
		if box.Status == "running" {
			r.Alive++
		}
	}
	_, after, err := weigh(us.server)
	r.Server = hundredths(float64(after-before) / float64(n) / (1 << 20))
	return err
}

// aliveContainers weighs the Engine's own.
func (s *session) aliveContainers(ctx context.Context, e *engine, near *server, n int) (w Weight, err error) {
	for box, err := range near.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			return w, err
		}
		if err := near.client.Delete(ctx, box.ID); err != nil {
			return w, err
		}
	}
	var mu sync.Mutex
	var made []*container
	defer func() {
		for _, c := range made {
			err = errors.Join(err, c.remove(ctx))
		}
	}()
	return e.weighed(ctx, near, n, func() error {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(densityMake)
		for range n {
			g.Go(func() error {
				if gctx.Err() != nil {
					return gctx.Err()
				}
				c, err := e.startContainer(gctx, engineImage, usual())
				if c != nil {
					mu.Lock()
					defer mu.Unlock()
					made = append(made, c)
				}
				return err
			})
		}
		return g.Wait()
	})
}

func (d *DockerAlive) rows(row func(name string, f *Figures)) {
	if d == nil {
		return
	}
	row("create → first command of many on the Engine", d.Create)
	row("command in one of them", d.Exec)
	row("command in all of them at once", d.AtOnce)
}

func (d *DockerAlive) lines(say func(format string, args ...any)) {
	if d == nil {
		return
	}
	say("on the Engine %d of %d are alive: the host's available memory fell by %.2f MB each, the Engine has %.2f MB more (RSS) and the server %.2f; of containers that only wait it is %.2f and %.2f",
		d.Alive, d.Asked, d.Ours.Available, d.Ours.Engine, d.Server, d.Theirs.Available, d.Theirs.Engine)
}
