// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"maps"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
)

// Report is what the sandboxes of a project, or of all, use that are up. Nobody changes one.
type Report struct {
	Items   []Stats
	Sum     Sum
	History []Sample // what they used together, by the minute, oldest first: those that are up still
	Host    *Host    // for who runs the server alone
}

// Sum is what several sandboxes use together. What is counted of none of them is negative.
type Sum struct {
	Sandboxes int
	Sample
}

func nothing(at time.Time) Sum {
	return Sum{Sample: Sample{At: at, CPUs: -1, MemoryBytes: -1, MemoryPeak: -1, DiskBytes: -1, Tasks: -1, Network: noNetwork}}
}

// with returns the sum with one sandbox more.
func (s Sum) with(one Sample) Sum {
	s.Sandboxes++
	s.Sample = s.plus(one)
	return s
}

func (s Sample) plus(one Sample) Sample {
	if one.CPUs >= 0 {
		s.CPUs = max(s.CPUs, 0) + one.CPUs
	}
	for _, f := range []struct {
		sum *float64
		n   float64
	}{{&s.Network.InRate, one.Network.InRate}, {&s.Network.OutRate, one.Network.OutRate}} {
		if f.n >= 0 {
			*f.sum = max(*f.sum, 0) + f.n
		}
	}
	for _, f := range []struct {
		sum *int64
		n   int64
	}{{&s.MemoryBytes, one.MemoryBytes}, {&s.DiskBytes, one.DiskBytes}, {&s.Tasks, one.Tasks}} {
		if f.n >= 0 {
			*f.sum = max(*f.sum, 0) + f.n
		}
	}
	return s
}

// Sum returns what the sandboxes of a project, or ("") of all, used together in the last round, which was less than a minute
// ago. It reads nothing. It is false before the first round.
func (s *Service) Sum(project string) (Sum, bool) {
	s.mu.Lock()
	sums, at := s.sums, s.round // which nobody changes
	s.mu.Unlock()
	if sums == nil {
		return Sum{}, false
	}
	if one, ok := sums[project]; ok && project != "" {
		one.At = at
		return one, true
	}
	all := nothing(at)
	if project == "" {
		for _, one := range sums {
			all.Sandboxes += one.Sandboxes
			all.Sample = all.plus(one.Sample)
		}
	}
	return all, true
}

// All returns what each sandbox of the caller's project uses that is up, or for who runs the server of all; one that
// cannot be read is without.
func (s *Service) All(ctx context.Context, c access.Caller, allProjects bool) (Report, error) {
	project, err := whose(c, allProjects)
	if err != nil {
		return Report{}, err
	}
	r, err := s.report(ctx, project)
	if err != nil {
		return Report{}, err
	}
	return s.withHost(c, r), nil
}

// whose returns the project that a caller looks at; "": all.
func whose(c access.Caller, allProjects bool) (string, error) {
	if err := c.Require(access.SandboxesRead); err != nil || !allProjects {
		return c.Project, err
	}
	return "", c.Require(access.ServerAdmin)
}

func (s *Service) withHost(c access.Caller, r Report) Report {
	if c.Require(access.ServerAdmin) == nil {
		r.Host = s.host()
	}
	return r
}

func (s *Service) report(ctx context.Context, project string) (Report, error) {
	up, err := s.up(ctx, project)
	if err != nil {
		return Report{}, err
	}
	r := Report{Items: make([]Stats, len(up)), Sum: nothing(s.now())}
	at := make(map[sandbox.ID]int, len(up))
	for n, box := range up {
		at[box.ID] = n
	}
	s.each(ctx, up, func(box *sandbox.Sandbox) {
		one, err := s.stats(ctx, box)
		if err != nil {
			one = Stats{Sandbox: box}
		}
		r.Items[at[box.ID]] = one
	})
	minutes := make(map[time.Time]Sample)
	for _, one := range r.Items {
		if one.Now != nil {
			r.Sum = r.Sum.with(*one.Now)
		}
		for _, m := range one.History {
			sum, ok := minutes[m.At]
			if !ok {
				sum = nothing(m.At).Sample
			}
			minutes[m.At] = sum.plus(m)
		}
	}
	for _, m := range slices.SortedFunc(maps.Keys(minutes), time.Time.Compare) {
		r.History = append(r.History, minutes[m])
	}
	return r, ctx.Err()
}
