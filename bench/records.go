// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// Records is what a growing record of commands costs: all of them are of one sandbox, which
// is the worst case for whoever asks about it.
type Records struct {
	Steps []Recorded `json:"steps"`
}

// Recorded is how long things take when so many commands are on record.
type Recorded struct {
	Commands  int      `json:"commands"`
	PerSecond float64  `json:"commands_per_second"` // by which they were recorded since the step before
	Exec      *Figures `json:"exec"`                // one more
	Newest    *Figures `json:"newest"`              // the newest 50 events of the sandbox
	Oldest    *Figures `json:"oldest"`              // the oldest 50
	Typed     *Figures `json:"by_type"`             // the newest 50 of a type of which there is one
	One       *Figures `json:"by_process"`          // all about one command in the midst
	Processes *Figures `json:"processes"`           // the newest 1,000 commands, or as many as there are
	Running   *Figures `json:"running"`             // those that run, of which there is none
	Get       *Figures `json:"get"`                 // one command in the midst
}

var recordSteps = []int{10, 1000, 10_000, 100_000, 1_000_000}

const (
	recorders  = 8 // that run commands at the same time
	recordRuns = 100
	pageRuns   = 20 // of what gives a thousand
)

// records runs commands for real, step by step.
func (o *ours) records(ctx context.Context, most int) (*Records, error) {
	if most == 0 {
		return nil, nil
	}
	r := new(Records)
	err := o.with(ctx, v1.CreateSandbox{}, func(ref string) error {
		done := 0
		for _, n := range upTo(recordSteps, most) {
			if n <= done {
				continue
			}
			began := time.Now()
			midst, err := o.record(ctx, ref, n-done)
			if err != nil {
				return err
			}
			step := Recorded{Commands: n, PerSecond: hundredths(float64(n-done) / time.Since(began).Seconds())}
			if err := o.timeRecords(ctx, ref, midst, &step); err != nil {
				return fmt.Errorf("with %d commands on record: %w", n, err)
			}
			r.Steps = append(r.Steps, step)
			done = n + recordRuns // those that timed it are on record, too
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// record runs n commands, several at a time, and gives the id of one in their midst.
func (o *ours) record(ctx context.Context, ref string, n int) (midst string, err error) {
	var left atomic.Int64
	left.Store(int64(n))
	var id atomic.Pointer[string]
	g, gctx := errgroup.WithContext(ctx)
	for range recorders {
		g.Go(func() error {
			for {
				now := left.Add(-1)
				if now < 0 {
					return nil
				}
				r, err := o.client.Exec(gctx, ref, byArgv)
				if err != nil {
					return err
				}
				if now == int64(n/2) {
					id.Store(&r.ProcessID)
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	if id.Load() == nil {
		return "", errors.New("no command was run")
	}
	return *id.Load(), nil
}

func (o *ours) timeRecords(ctx context.Context, ref, midst string, into *Recorded) error {
	page := func(q client.ActivityQuery, least int) func() error {
		return func() error {
			p, err := o.client.ActivityPage(ctx, ref, q)
			if err == nil && len(p.Items) < least {
				err = fmt.Errorf("%d events match %+v, want %d or more", len(p.Items), q, least)
			}
			return err
		}
	}
	full := min(50, into.Commands)
	for _, step := range []struct {
		into **Figures
		n    int
		run  func() error
	}{
		{&into.Newest, recordRuns, page(client.ActivityQuery{Limit: 50}, full)},
		{&into.Oldest, recordRuns, page(client.ActivityQuery{Limit: 50, Oldest: true}, full)},
		{&into.Typed, recordRuns, page(client.ActivityQuery{Limit: 50, Types: []string{"sandbox.created"}}, 1)},
		{&into.One, recordRuns, page(client.ActivityQuery{Limit: 50, ProcessID: midst}, 1)},
		{&into.Processes, pageRuns, func() error {
			return o.listCommands(ctx, ref, client.ProcessQuery{Newest: true}, min(1000, into.Commands))
		}},
		{&into.Running, pageRuns, func() error { return o.listCommands(ctx, ref, client.ProcessQuery{Running: true}, 0) }},
		{&into.Get, recordRuns, func() error { _, err := o.client.Process(ctx, ref, midst); return err }},
		{&into.Exec, recordRuns, func() error { return o.exec(ctx, ref, byArgv) }},
	} {
		took, err := timed(ctx, step.n, step.run)
		if err != nil {
			return err
		}
		*step.into = took.figures()
	}
	return nil
}

// listCommands reads the first page of commands, which has to have so many.
func (o *ours) listCommands(ctx context.Context, ref string, q client.ProcessQuery, want int) error {
	n := 0
	for _, err := range o.client.ListProcesses(ctx, ref, q) {
		if err != nil {
			return err
		}
		if n++; n == want {
			break
		}
	}
	if n != want {
		return fmt.Errorf("%d commands are listed, want %d", n, want)
	}
	return nil
}

func (r *Records) rows(row func(name string, f *Figures)) {
	if r == nil {
		return
	}
	for _, s := range r.Steps {
		row(fmt.Sprintf("command, %d on record", s.Commands), s.Exec)
		row("newest 50 events", s.Newest)
		row("oldest 50 events", s.Oldest)
		row("events of a rare type", s.Typed)
		row("events of one command", s.One)
		row("newest 1,000 commands", s.Processes)
		row("commands that run, none", s.Running)
		row("one command", s.Get)
	}
}

func (r *Records) lines(say func(format string, args ...any)) {
	if r == nil {
		return
	}
	for _, s := range r.Steps[min(1, len(r.Steps)):] {
		say("commands by %d clients until %d are on record: %.0f a second", recorders, s.Commands, s.PerSecond)
	}
}
