// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "sandpit.dev/api/v1"
)

// Compute is ComputeSDK's public benchmark over our API: create, a probe that tells
// whether the sandbox is a fresh one, and `node -v`; the clock runs until the latter has
// ended, and the delete comes after it while others are still at work. ComputeSDK leaves
// out the best and the worst 5 % of the runs; nothing is left out here.
type Compute struct {
	Sequential *Figures `json:"sequential"`
	Staggered  *Figures `json:"staggered"` // one begins each 200 ms
	Burst      *Figures `json:"burst"`     // all begin in the same moment
	Probe      *Figures `json:"probe"`     // the probe alone, in the sequential runs
	Node       *Figures `json:"node"`      // `node -v` alone, there: mostly node's own start
	Missing    string   `json:"missing,omitempty"`
}

// probe is what ComputeSDK's identity probe does: a marker in a temporary directory says
// that somebody was here before, which fails the run; then who and where one is.
const probe = `for d in /tmp /var/tmp; do if [ -e $d/.bench-probe ]; then echo used; exit 9; fi; done
whoami; hostname; readlink /proc/self/ns/pid /proc/self/ns/mnt /proc/self/ns/net
cat /proc/self/cgroup /proc/sys/kernel/random/boot_id; tr '\0' ' ' < /proc/1/cmdline
touch /tmp/.bench-probe /var/tmp/.bench-probe`

// compute measures the loop on one server.
func (s *session) compute(ctx context.Context, o *ours) (c Compute, err error) {
	err = o.with(ctx, v1.CreateSandbox{}, func(ref string) error {
		r, err := o.client.Exec(ctx, ref, v1.Exec{Command: new("command -v node")})
		if err == nil && (r.ExitCode == nil || *r.ExitCode != 0) {
			c.Missing = "the image has no node"
		}
		return err
	})
	if err != nil || c.Missing != "" {
		return c, err
	}
	var probes, nodes series
	var mu sync.Mutex // guards both
	once := func() error { return o.computeOnce(ctx, nil) }
	first := together(ctx, 1, 0, func(int) error { return once() })
	sequential, err := timedAfter(ctx, crowd, func() (time.Duration, error) {
		began := time.Now()
		var took time.Duration
		err := o.computeOnce(ctx, func(probe, node time.Duration) {
			took = time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			probes.add(probe, nil)
			nodes.add(node, nil)
		})
		return took, err
	})
	s.failed("ComputeSDK's loop", firstOf(first.failure, err))
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	c.Sequential, c.Probe, c.Node = sequential.figures(), probes.figures(), nodes.figures()
	for _, way := range []struct {
		into  **Figures
		every time.Duration
	}{{&c.Staggered, computeEvery}, {&c.Burst, 0}} {
		times, err := o.computeCrowd(ctx, way.every)
		s.failed("ComputeSDK's loop", err)
		*way.into = times.figures()
		if err := sleep(ctx, calm); err != nil {
			return c, err
		}
	}
	return c, nil
}

// computeCrowd runs a crowd's loops. Their deletes are part of the load and not of the
// times.
func (o *ours) computeCrowd(ctx context.Context, every time.Duration) (series, error) {
	var mu sync.Mutex
	var times series
	all := together(ctx, crowd, every, func(int) error {
		began := time.Now()
		var took time.Duration
		err := o.computeOnce(ctx, func(_, _ time.Duration) { took = time.Since(began) })
		mu.Lock()
		defer mu.Unlock()
		times.add(took, err)
		return err
	})
	return times, all.failure
}

// computeOnce is one iteration. done hears how long both commands took as soon as the
// second has ended; it may be nil.
func (o *ours) computeOnce(ctx context.Context, done func(probe, node time.Duration)) (err error) {
	box, _, err := o.client.Create(ctx, v1.CreateSandbox{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.client.Delete(context.WithoutCancel(ctx), box.ID)) }()
	began := time.Now()
	r, err := o.client.Exec(ctx, box.ID, v1.Exec{Command: new(probe)})
	if err == nil && (r.ExitCode == nil || *r.ExitCode != 0) {
		err = fmt.Errorf("the probe ended with %s: %s%s", number(r.ExitCode), r.Stdout, r.Stderr)
	}
	if err != nil {
		return err
	}
	probed := time.Now()
	r, err = o.client.Exec(ctx, box.ID, v1.Exec{Command: new("node -v")})
	if err == nil && (r.ExitCode == nil || *r.ExitCode != 0 || !strings.HasPrefix(r.Stdout, "v")) {
		err = fmt.Errorf("node -v ended with %s: %s%s", number(r.ExitCode), r.Stdout, r.Stderr)
	}
	if err == nil && done != nil {
		done(probed.Sub(began), time.Since(probed))
	}
	return err
}

// timedAfter runs fn n times, which says itself how long the part took that counts.
func timedAfter(ctx context.Context, n int, fn func() (time.Duration, error)) (series, error) {
	var s series
	var failure error
	for range n {
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		took, err := fn()
		s.add(took, err)
		failure = firstOf(failure, err)
	}
	return s, failure
}

func (c *Compute) rows(with string, row func(name string, f *Figures)) {
	row("ComputeSDK's loop, sequential, "+with, c.Sequential)
	row("its probe", c.Probe)
	row("its node -v", c.Node)
	row(fmt.Sprintf("the loop, one each %v, %s", computeEvery, with), c.Staggered)
	row(fmt.Sprintf("the loop, %d at once, %s", crowd, with), c.Burst)
}
