// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/internal/leaktest"
)

// Processes is what processes cost that are started, followed and left to run.
type Processes struct {
	// MBPerSecond is standard output through one follower, from the start of the
	// process to its end as the follower hears it: the median over runs.
	MBPerSecond *float64 `json:"stdout_mb_per_second"`

	Followers int      `json:"followers"`     // of one process at a time
	Attach    *Figures `json:"attach"`        // until a follower hears the first frame, all asking at once
	Fan       *Figures `json:"fan_out"`       // from a line's being written to stdin until all followers have its echo
	PerFollow float64  `json:"agent_kb_each"` // by which the agent's memory grows with a follower

	InARow     int      `json:"in_a_row"`            // processes, one after the other
	Start      *Figures `json:"start_to_end"`        // from the start to its end as one who waits hears it
	AgentAfter float64  `json:"agent_mb_at_a_tenth"` // the agent's memory after the first tenth of them
	AgentEnd   float64  `json:"agent_mb_at_the_end"` // and after all
}

const (
	stdoutSize = 60 << 20 // of one run; a log keeps at most 64 MiB of a stream
	stdoutRuns = 7
	audience   = 16 // as many as a server lets follow one process
	fanRuns    = 20
)

// processes measures all that in one sandbox.
func (o *ours) processes(ctx context.Context, s *server, n int) (_ *Processes, err error) {
	if n == 0 {
		return nil, nil
	}
	before, err := s.scope().Processes()
	if err != nil {
		return nil, err
	}
	box, _, err := o.client.Create(ctx, v1.CreateSandbox{IdleTimeoutSeconds: new(int64(0))})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.client.Delete(context.WithoutCancel(ctx), box.ID)) }()
	agent, err := newcomer(s, before)
	if err != nil {
		return nil, err
	}
	r := &Processes{Followers: audience, InARow: n}
	for _, step := range []func() error{
		func() error { return o.stdout(ctx, box.ID, r) },
		func() error { return o.fanOut(ctx, box.ID, agent, r) },
		func() error { return o.inARow(ctx, box.ID, agent, n, r) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// newcomer gives the process that a new sandbox brought: its agent.
func newcomer(s *server, before []leaktest.Process) (int, error) {
	known := map[int]bool{}
	for _, p := range before {
		known[p.PID] = true
	}
	after, err := s.scope().Processes()
	if err != nil {
		return 0, err
	}
	for _, p := range after {
		if !known[p.PID] && !p.Dead {
			return p.PID, nil
		}
	}
	return 0, errors.New("a new sandbox has no process")
}

func (o *ours) stdout(ctx context.Context, ref string, r *Processes) error {
	var speeds []float64
	for range stdoutRuns {
		began := time.Now()
		p, err := o.client.StartProcess(ctx, ref, v1.StartProcess{
			Argv: []string{"head", "-c", fmt.Sprint(stdoutSize), "/dev/zero"}, MaxStdoutBytes: new(int64(64 << 20)),
		})
		if err != nil {
			return err
		}
		total := 0
		for out, err := range p.Follow(ctx, client.FollowOptions{}) {
			if err != nil {
				return err
			}
			total += len(out.Data)
		}
		if total != stdoutSize {
			return fmt.Errorf("a follower got %d bytes of %d", total, stdoutSize)
		}
		speeds = append(speeds, float64(total)/1e6/time.Since(began).Seconds())
	}
	r.MBPerSecond = median(speeds)
	return nil
}

// fanOut has many follow one process, and times what it says.
func (o *ours) fanOut(ctx context.Context, ref string, agent int, r *Processes) error {
	p, err := o.client.StartProcess(ctx, ref, v1.StartProcess{Command: new("echo up; exec cat"), StreamStdin: new(true)})
	if err != nil {
		return err
	}
	empty, err := leaktest.PSS(agent)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var attach series
	var mu sync.Mutex
	heard := make(chan struct{}, audience*(fanRuns+1))
	var g errgroup.Group
	for range audience {
		g.Go(func() error {
			began := time.Now()
			first := true
			for out, err := range p.Follow(ctx, client.FollowOptions{}) {
				if err != nil {
					return err
				}
				if out.Exit != nil {
					return nil
				}
				if first {
					mu.Lock()
					attach.add(time.Since(began), nil)
					mu.Unlock()
					first = false
				}
				heard <- struct{}{}
			}
			return nil
		})
	}
	all := func() error {
		for range audience {
			select {
			case <-heard:
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Minute):
				return errors.New("a follower did not hear a line within a minute")
			}
		}
		return nil
	}
	if err := all(); err != nil {
		return err
	}
	r.Attach = attach.figures()
	full, err := leaktest.PSS(agent)
	if err != nil {
		return err
	}
	r.PerFollow = math.Round(float64(full-empty) / audience / (1 << 10))
	var fan series
	for range fanRuns {
		began := time.Now()
		if _, err := p.Write(ctx, []byte("a line\n")); err != nil {
			return err
		}
		if err := all(); err != nil {
			return err
		}
		fan.add(time.Since(began), nil)
	}
	r.Fan = fan.figures()
	if err := p.CloseStdin(ctx); err != nil {
		return err
	}
	return g.Wait()
}

// inARow starts one process after the other, each when the one before has ended.
func (o *ours) inARow(ctx context.Context, ref string, agent, n int, r *Processes) error {
	var start series
	weigh := func(into *float64) error {
		if err := sleep(ctx, calm+2*time.Second); err != nil { // an agent gives memory back when it is quiet
			return err
		}
		b, err := leaktest.PSS(agent)
		*into = math.Round(float64(b)/(1<<20)*100) / 100
		return err
	}
	for i := range n {
		if i == n/10 {
			if err := weigh(&r.AgentAfter); err != nil {
				return err
			}
		}
		began := time.Now()
		p, err := o.client.StartProcess(ctx, ref, v1.StartProcess{Argv: []string{"/bin/echo", "hello"}})
		if err != nil {
			return err
		}
		rec, err := p.Wait(ctx)
		if err != nil {
			return err
		}
		if *rec.ExitCode != 0 || rec.StdoutBytes != 6 {
			return fmt.Errorf("process %d ended with %d, cause %q, and wrote %d bytes", i, *rec.ExitCode, rec.Cause, rec.StdoutBytes)
		}
		start.add(time.Since(began), nil)
	}
	r.Start = start.figures()
	return weigh(&r.AgentEnd)
}
