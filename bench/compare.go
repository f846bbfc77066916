// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/leaktest"
)

// Comparison is one thing as sandpit and each peer do it, by their names; nil is a
// peer that is not there, or that has nothing of the kind.
type Comparison struct {
	Figures map[string]*Figures
	// Ratios say how many times longer a peer takes than sandpit did in the same pair:
	// the median over the pairs.
	Ratios map[string]*float64
}

// side is one of those that are compared; its name is "sandpit" or a peer's.
type side struct {
	name string
	run  func(ctx context.Context) (took, cpu time.Duration, err error)
}

// quickShare is how long one side may take in a comparison of a quick run, which has
// to end within a minute.
const quickShare = 6 * time.Second

// compare runs the sides in turn, n times each. The order changes from round to round,
// so that nobody always runs in another's wake. A side that has had its share of the
// time, if there is one, sits out what is left, after one run at least; a quarter of
// the share is for what does not count. Its figures say of how many runs they are.
func (s *session) compare(ctx context.Context, n int, sides []side, counts func() error) (Comparison, map[string]time.Duration, error) {
	times := make([]series, len(sides))
	ratios := make([][]float64, len(sides))
	failures := make([]error, len(sides))
	spent := make([]time.Duration, len(sides))
	cpu := map[string]time.Duration{}
	for i := range n + warmUp {
		if i == warmUp { // now it counts
			clear(times)
			clear(ratios)
			clear(failures)
			clear(cpu)
			if err := counts(); err != nil {
				return Comparison{}, nil, err
			}
		}
		share := s.share
		if i < warmUp {
			share /= 4
		}
		took := make([]time.Duration, len(sides))
		worked := make([]bool, len(sides))
		for k := range sides {
			if ctx.Err() != nil {
				return Comparison{}, nil, ctx.Err()
			}
			at := (i + k) % len(sides)
			if s.share > 0 && times[at].n > 0 && spent[at] > share {
				continue
			}
			began := time.Now()
			var used time.Duration
			var err error
			took[at], used, err = sides[at].run(ctx)
			spent[at] += time.Since(began)
			times[at].add(took[at], err)
			failures[at] = firstOf(failures[at], err)
			worked[at] = err == nil
			cpu[sides[at].name] += used
		}
		for at := range sides {
			if worked[0] && worked[at] {
				ratios[at] = append(ratios[at], float64(took[at])/float64(took[0]))
			}
		}
	}
	c := Comparison{Figures: map[string]*Figures{}, Ratios: map[string]*float64{}}
	for _, name := range Peers() {
		c.Figures[name], c.Ratios[name] = nil, nil // each is named, there or not
	}
	for at, who := range sides {
		c.Figures[who.name] = times[at].figures()
		if at > 0 {
			c.Ratios[who.name] = median(ratios[at])
		}
		if failures[at] != nil {
			s.out.Failures = append(s.out.Failures, fmt.Sprintf("%s: %v", who.name, failures[at]))
		}
	}
	return c, cpu, nil
}

// firstCommands compares how long a new sandbox's first command's result takes: cold, one
// after the other, nothing prewarmed unless it is asked for.
func (s *session) firstCommands(ctx context.Context) error {
	sides := []side{{"sandpit", func(ctx context.Context) (time.Duration, time.Duration, error) {
		took, err := s.us.firstCommand(ctx, byArgv)
		return took, 0, err
	}}}
	for _, p := range s.peers {
		sides = append(sides, side{p.name, p.FirstCommand})
	}
	// The same by two requests is a further side of ours, and with a shell: what that costs is the shell.
	sides = append(sides, side{inTwo, func(ctx context.Context) (time.Duration, time.Duration, error) {
		took, err := s.us.inTwo(ctx, byArgv)
		return took, 0, err
	}}, side{inShell, func(ctx context.Context) (time.Duration, time.Duration, error) {
		took, err := s.us.firstCommand(ctx, byShell)
		return took, 0, err
	}})
	n := s.o.pairs()
	var before time.Duration
	c, cpu, err := s.compare(ctx, n, sides, func() (err error) {
		s.us.create, s.us.remove = series{}, series{}
		before, err = leaktest.CPU(s.us.pid)
		return err
	})
	if err != nil {
		return err
	}
	after, err := leaktest.CPU(s.us.pid)
	if err != nil {
		return err
	}
	delete(c.Ratios, inTwo)
	delete(c.Ratios, inShell)
	s.out.FirstCommand, s.out.FirstCommandRatio = c.Figures, c.Ratios
	s.out.Create, s.out.Delete = s.us.create.figures(), s.us.remove.figures()
	s.out.CPU = map[string]*float64{"sandpit": new(ms((after - before) / time.Duration(max(1, s.us.remove.n))))} // however it was asked for
	for _, p := range s.peers {
		if f := c.Figures[p.name]; f.OK > 0 && cpu[p.name] > 0 {
			s.out.CPU[p.name] = new(ms(cpu[p.name] / time.Duration(f.OK)))
		}
	}
	return nil
}

// Further sides of ours in [Report.FirstCommand].
const (
	inTwo   = "sandpit_two_requests"
	inShell = "sandpit_shell"
)

// execs compares a command in a sandbox that runs already, with those peers that have such.
func (s *session) execs(ctx context.Context) (err error) {
	box, _, err := s.us.client.Create(ctx, v1.CreateSandbox{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.us.client.Delete(context.WithoutCancel(ctx), box.ID)) }()
	sides := []side{{"sandpit", func(ctx context.Context) (time.Duration, time.Duration, error) {
		began := time.Now()
		err := s.us.exec(ctx, box.ID, byArgv)
		return time.Since(began), 0, err
	}}}
	for _, p := range s.peers {
		if k, ok := p.Peer.(Keeper); ok {
			_, _ = k.Exec(ctx) // what has to be there before; if it fails, the runs do
			sides = append(sides, side{p.name, func(ctx context.Context) (time.Duration, time.Duration, error) {
				took, err := k.Exec(ctx)
				return took, 0, err
			}})
		}
	}
	c, _, err := s.compare(ctx, s.o.pairs(), sides, func() error { return nil })
	if err != nil {
		return err
	}
	s.out.Exec, s.out.ExecRatio = c.Figures, c.Ratios
	return nil
}

// others names the peers of a comparison that were measured, sorted.
func others(figures map[string]*Figures) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		if figures[name] != nil && name != "sandpit" && name != inTwo && name != inShell {
			names = append(names, name)
		}
	}
	return names
}
