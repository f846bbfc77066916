// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "sandpit.dev/api/v1"
)

// DockerStart is a new sandbox on an Engine and its first command, beside the Engine's own five requests.
type DockerStart struct {
	First Compared `json:"create_first_command"`
	// Started is from the moment that the Engine's own event gives for the container's start to the first command's result.
	Started Compared `json:"started_first_command"`
	// Answers is the same less a further command in the same sandbox: how long the agent takes to answer, and what a first command has beyond
	// a further one. It is more than the agent's own part.
	Answers *Figures `json:"agent_answers"`
}

// dockerPool is how many sandboxes the server with a pool keeps ready.
const dockerPool = 2

func (s *session) dockerStart(ctx context.Context, e *engine) (_ *DockerStart, err error) {
	cold, err := s.startDockerServer(ctx, e, "start", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cold.close(ctx)) }()
	pooled, err := s.startDockerServer(ctx, e, "pool", dockerPool, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pooled.close(ctx)) }()
	peer := &docker{engine: e}
	r := new(DockerStart)
	n := max(2, s.o.pairs()/4)
	if err := pooled.full(ctx); err != nil {
		return nil, err
	}
	before, err := pooled.hits(ctx)
	if err != nil {
		return nil, err
	}
	r.First, err = s.turns(ctx, "create → first command", n, 1, []turn{
		{Plain, func(ctx context.Context) (time.Duration, error) {
			took, _, err := peer.FirstCommand(ctx)
			return took, err
		}},
		{Sockets, func(ctx context.Context) (time.Duration, error) { return cold.firstCommand(ctx, byArgv) }},
		{Pooled, func(ctx context.Context) (time.Duration, error) {
			took, err := pooled.firstCommand(ctx, byArgv)
			return took, errors.Join(err, pooled.full(ctx)) // the next side runs by itself
		}},
	})
	if err != nil {
		return nil, err
	}
	after, err := pooled.hits(ctx)
	if err != nil {
		return nil, err
	}
	if got := after - before; got != int64(n+1) {
		return nil, fmt.Errorf("of %d creates %d were given a sandbox of the pool", n+1, got)
	}
	return r, s.dockerStarted(ctx, cold, peer, n, r)
}

// dockerStarted measures from the Engine's event on.
func (s *session) dockerStarted(ctx context.Context, cold *dockerServer, peer *docker, n int, r *DockerStart) (err error) {
	events, err := peer.engine.startEvents(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, events.close()) }()
	var answers series
	rounds := 0
	r.Started, err = s.turns(ctx, "container started → first command", n, 1, []turn{
		{Plain, func(ctx context.Context) (time.Duration, error) {
			c, err := peer.engine.startContainer(ctx, engineImage, usual())
			if err != nil {
				return 0, err
			}
			err = peer.run(ctx, c.id)
			end := time.Now()
			began, heard := events.of(ctx, func(e startEvent) bool { return e.container == c.id })
			return end.Sub(began), errors.Join(err, heard, c.remove(ctx))
		}},
		{Sockets, func(ctx context.Context) (time.Duration, error) {
			id, err := cold.ready(ctx, byArgv)
			end := time.Now()
			if err != nil {
				return 0, errors.Join(err, cold.end(ctx, id))
			}
			began, err := events.of(ctx, func(e startEvent) bool { return e.sandbox == id })
			took := end.Sub(began)
			further, failed := timedOnce(func() error { return cold.exec(ctx, id, byArgv) })
			if err = errors.Join(err, failed); err == nil && rounds > 0 {
				answers.add(took-further, nil)
			}
			rounds++
			return took, errors.Join(err, cold.end(ctx, id))
		}},
	})
	r.Answers = answers.figures()
	return err
}

// pool returns the server's pool.
func (d *dockerServer) pool(ctx context.Context) (v1.Pool, error) {
	info, err := d.client.Info(ctx)
	if err != nil {
		return v1.Pool{}, err
	}
	for _, p := range info.Pools {
		if p.Min > 0 {
			return p, nil
		}
	}
	return v1.Pool{}, errors.New("the server has no pool")
}

// full waits until the pool is.
func (d *dockerServer) full(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		p, err := d.pool(limit)
		if err == nil && p.Ready >= p.Target && p.Making == 0 {
			return nil
		}
		if err := errors.Join(err, sleep(limit, 4*askEvery)); err != nil {
			return fmt.Errorf("the pool is not full: %w", err)
		}
	}
}

func (d *dockerServer) hits(ctx context.Context) (int64, error) {
	p, err := d.pool(ctx)
	return p.Hits, err
}

func (d *DockerStart) rows(row func(name string, f *Figures)) {
	if d == nil {
		return
	}
	d.First.rows(row)
	d.Started.rows(row)
	row("the agent answers, at most", d.Answers)
}

func (d *DockerStart) lines(func(format string, args ...any)) {}
