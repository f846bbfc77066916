// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor runs the checks of a running server for whoever asks: each within a bound, and once for all who ask at
// the same time. It repairs nothing, and does not know what is checked.
package doctor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// Status is how grave a [Finding] is.
type Status string

// The statuses, the worst last.
const (
	Passed Status = "ok"
	Warned Status = "warning" // sandboxes run, and something is worse than it could be
	Failed Status = "failed"  // no sandbox can run
)

// Statuses returns all of them, the worst last.
func Statuses() []Status { return []Status{Passed, Warned, Failed} }

// Finding is what a check found of one thing.
type Finding struct {
	Name   string
	Status Status
	Detail string // what was found, and why it is so
	Remedy string // how to mend it; may be empty
}

// Check looks at something. Look changes nothing, and returns soon after its context is done; one that does not is
// told of in its place, and not begun again before it has ended.
type Check struct {
	Name string
	Look func(ctx context.Context) []Finding
}

// Report is what all checks found, in their order.
type Report struct {
	At       time.Time // when they began
	Took     time.Duration
	Findings []Finding
}

// Worst returns the worst status of all findings.
func (r *Report) Worst() Status {
	worst := Passed
	for _, f := range r.Findings {
		if f.Status == Failed || f.Status == Warned && worst == Passed {
			worst = f.Status
		}
	}
	return worst
}

// Options of a [Service].
type Options struct {
	// Bound is how long a round of checks may take in all; zero: 8 s.
	Bound time.Duration
	Now   func() time.Time // nil: time.Now
}

// grace is what a round has left of its bound, as a part of it, when the checks' contexts end: for them to say so.
const grace = 8

// Service runs the checks. It is safe for concurrent use.
type Service struct {
	checks []Check
	bound  time.Duration
	now    func() time.Time
	ctx    context.Context // of the checks
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	round  *round            // that goes on; nil: none
	busy   map[int]time.Time // since when checks run, by their number
}

// round is one run of all checks.
type round struct {
	done   chan struct{}
	report Report // when done is closed
}

// New returns a service of checks. It starts nothing.
func New(checks []Check, o Options) *Service {
	if o.Bound <= 0 {
		o.Bound = 8 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Service{checks: checks, bound: o.Bound, now: o.Now, ctx: ctx, cancel: cancel, busy: make(map[int]time.Time)}
}

// Report returns what the checks find now, or what a round of them finds that another caller has begun. It needs the
// scope server:admin, and waits no longer than the bound of a round.
func (s *Service) Report(ctx context.Context, c access.Caller) (Report, error) {
	if err := c.Require(access.ServerAdmin); err != nil {
		return Report{}, err
	}
	r, err := s.join()
	if err != nil {
		return Report{}, err
	}
	select {
	case <-r.done:
		return r.report, nil
	case <-ctx.Done():
		return Report{}, context.Cause(ctx)
	}
}

func (s *Service) join() (*round, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fault.New(fault.Unavailable, "the server stops").WithRemedy("ask again when it is back")
	}
	if s.round == nil {
		s.round = &round{done: make(chan struct{}), report: Report{At: s.now()}}
		r := s.round
		s.work.Go(func() { s.run(r) })
	}
	return s.round, nil
}

// found is what one check found, by its number.
type found struct {
	n   int
	all []Finding
}

func (s *Service) run(r *round) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.ctx, s.bound-s.bound/grace)
	defer cancel()
	late := time.NewTimer(s.bound)
	defer late.Stop()
	results := make(chan found, len(s.checks)) // so that a late one waits for nobody
	open := 0
	for n := range s.checks {
		if s.begin(ctx, n, results) {
			open++
		}
	}
	all := make([][]Finding, len(s.checks))
	for waits := true; open > 0 && waits; {
		select {
		case f := <-results:
			all[f.n] = f.all
			open--
		case <-late.C:
			waits = false
		case <-s.ctx.Done():
			waits = false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(results) > 0 { // what came at the last moment
		f := <-results
		all[f.n] = f.all
	}
	for n, fs := range all {
		if since, still := s.busy[n]; still {
			fs = []Finding{{
				Name: s.checks[n].Name, Status: Warned, Detail: fmt.Sprintf("the check has had no answer for %v, and is not begun again until it has", max(s.now().Sub(since), 0).Round(time.Millisecond)),
				Remedy: "see the kernel's log: a disk or a service of the host may hang",
			}}
		}
		r.report.Findings = append(r.report.Findings, fs...)
	}
	r.report.Took = time.Since(began)
	s.round = nil
	close(r.done)
}

// begin begins a check that does not run already, and reports whether it did.
func (s *Service) begin(ctx context.Context, n int, results chan<- found) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, runs := s.busy[n]; runs {
		return false
	}
	s.busy[n] = s.now()
	s.work.Go(func() {
		fs := s.checks[n].Look(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, n)
		results <- found{n, fs}
	})
	return true
}

// Close ends the checks: their contexts are done, and no more begin. It waits for those that go on until ctx is done,
// which it returns the error of: what hangs in the kernel ends with the process.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	ended := make(chan struct{})
	go func() { s.work.Wait(); close(ended) }() // which ends with the last check
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
