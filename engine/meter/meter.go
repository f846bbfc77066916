// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package meter reads what sandboxes use now, and keeps the last hour of it by the minute, in memory. It stands beside the
// engine: it knows the records and the runtimes, and no verb. What it does counts as no use of a sandbox, and
// nothing inside is asked.
package meter

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Options of a [Service].
type Options struct {
	// Host tells what the whole host uses; nil: nobody does.
	Host func() (HostUse, error)
	// Network tells how many bytes a sandbox that is up got from other hosts, and sent to them; false: that is not
	// counted. It asks nothing of the sandbox. nil: nobody does.
	Network func(sandbox.ID) (in, out int64, ok bool)
	Now     func() time.Time // nil: time.Now
	Logger  *slog.Logger     // nil: none
}

// Service reads and keeps the figures. It is safe for concurrent use.
type Service struct {
	store   store.Store
	drivers map[string]runtime.Driver
	now     func() time.Time
	log     *slog.Logger
	network func(sandbox.ID) (in, out int64, ok bool)

	mu    sync.Mutex
	known map[sandbox.ID]*known // of sandboxes that are up
	sums  map[string]Sum        // of projects, in the last round
	round time.Time             // when that was

	machine   machine
	followers followers

	readings readings
}

// New returns a service of the sandboxes on record, by the names of their runtimes.
func New(s store.Store, drivers map[string]runtime.Driver, o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{
		store: s, drivers: drivers, now: o.Now, log: o.Logger, network: o.Network, known: make(map[sandbox.ID]*known),
		machine: machine{use: o.Host}, followers: followers{of: make(map[string]*look)},
	}
}

// known is what is kept of one sandbox that is up.
type known struct {
	mu      sync.Mutex
	started time.Time // of which start this is
	last    Sample
	minute  Sample // the last one in hour
	hour    ring
}

const (
	every  = time.Minute
	fresh  = time.Second // a figure that is no older is not read again, however many look
	atOnce = 8
)

// Run reads the figures of all that is up, once a minute, until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := s.Round(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("what sandboxes use cannot be read; it is tried again", "error", err)
			}
		}
	}
}

// Round is one minute's reading. It forgets what is not up any more.
func (s *Service) Round(ctx context.Context) error {
	all, err := s.up(ctx, "")
	if err != nil {
		return err
	}
	there := make(map[sandbox.ID]bool, len(all))
	for _, box := range all {
		there[box.ID] = true
	}
	s.mu.Lock()
	for id := range s.known {
		if !there[id] {
			delete(s.known, id)
		}
	}
	s.mu.Unlock()
	var mu sync.Mutex
	sums := make(map[string]Sum)
	s.each(ctx, all, func(box *sandbox.Sandbox) {
		k, err := s.read(ctx, box, true)
		if err != nil {
			return
		}
		k.mu.Lock()
		last := k.last
		k.mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		sum, ok := sums[box.Project]
		if !ok {
			sum = nothing(s.now())
		}
		sums[box.Project] = sum.with(last)
	})
	if _, err := s.machine.read(s.now(), true); err != nil {
		s.log.Warn("what the host uses cannot be read; it is tried again", "error", err)
	}
	s.mu.Lock()
	s.sums, s.round = sums, s.now()
	s.mu.Unlock()
	return ctx.Err()
}

func (s *Service) each(ctx context.Context, all []*sandbox.Sandbox, do func(*sandbox.Sandbox)) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, box := range all {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { do(box); return nil })
	}
	_ = group.Wait() // which has no errors
}

// up returns the sandboxes of a project ("": of all) that run or are paused, newest first.
func (s *Service) up(ctx context.Context, project string) (all []*sandbox.Sandbox, err error) {
	q := store.SandboxQuery{Project: project, States: []sandbox.State{sandbox.Running, sandbox.Paused}, Limit: store.MaxPage}
	for {
		err = s.store.View(ctx, func(tx store.Tx) error {
			page, next, err := tx.Sandboxes().List(q)
			all, q.Cursor = append(all, page...), next
			return err
		})
		if err != nil || q.Cursor == "" {
			return all, err
		}
	}
}

// read returns a figure that is no older than fresh. One of a minute is kept.
func (s *Service) read(ctx context.Context, box *sandbox.Sandbox, minute bool) (*known, error) {
	s.mu.Lock()
	k := s.known[box.ID]
	if k == nil {
		k = &known{}
		s.known[box.ID] = k
	}
	s.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.started.Equal(box.StartedAt) { // a stopped one's hour goes
		k.started, k.last, k.minute, k.hour = box.StartedAt, Sample{}, Sample{}, ring{}
	}
	now := s.now()
	if age := now.Sub(k.last.At); minute || age < 0 || age >= fresh {
		u, err := s.use(ctx, box)
		if err != nil {
			if fault.Is(err, fault.State) || fault.Is(err, fault.NotFound) {
				s.mu.Lock()
				delete(s.known, box.ID)
				s.mu.Unlock()
			}
			return nil, err
		}
		n := noNetwork
		if s.network != nil {
			if in, out, ok := s.network(box.ID); ok {
				n = carried(k.last, in, out, now)
			}
		}
		k.last = sampleOf(now, u, rate(k.last, u, box.StartedAt, now), n)
	}
	if minute {
		one := k.last
		one.CPUs = rate(k.minute, runtime.Use{CPU: one.CPU}, box.StartedAt, now)
		if n := one.Network; n.In >= 0 {
			one.Network = carried(k.minute, n.In, n.Out, now)
		}
		k.minute = one
		k.hour.add(one)
	}
	return k, nil
}

// rate is how many processors were in use since a sample, or without one since the start.
func rate(before Sample, u runtime.Use, started, now time.Time) float64 {
	from, was := before.At, before.CPU
	if from.IsZero() || u.CPU < was {
		from, was = started, 0
	}
	if d := now.Sub(from); d > 0 && u.CPU >= 0 {
		return (u.CPU - was).Seconds() / d.Seconds()
	}
	return -1
}

// open returns the instance of a sandbox.
func (s *Service) open(ctx context.Context, box *sandbox.Sandbox) (runtime.Instance, error) {
	d := s.drivers[box.Runtime]
	if d == nil {
		return nil, fault.New(fault.Unsupported, "this server has no runtime %s", box.Runtime)
	}
	return d.Open(ctx, runtime.Handle{ID: box.ID, Data: box.Handle})
}

func (s *Service) use(ctx context.Context, box *sandbox.Sandbox) (runtime.Use, error) {
	i, err := s.open(ctx, box)
	if err != nil {
		return runtime.Use{}, err
	}
	m, ok := i.(runtime.Meter)
	if !ok {
		return runtime.Use{}, fault.New(fault.Unsupported, "the runtime %s does not count what sandboxes use", box.Runtime)
	}
	return m.Use(ctx)
}

// Stats is what a sandbox uses.
type Stats struct {
	Sandbox *sandbox.Sandbox // on record
	Now     *Sample          // nil: it is not up
	History []Sample         // the last hour by the minute, oldest first
}

// Stats returns what a sandbox uses. It is no use of it, and starts none.
func (s *Service) Stats(ctx context.Context, c access.Caller, ref string) (Stats, error) {
	box, err := s.find(ctx, c, ref)
	if err != nil {
		return Stats{}, err
	}
	return s.stats(ctx, box)
}

// find finds the sandbox that a reader names.
func (s *Service) find(ctx context.Context, c access.Caller, ref string) (box *sandbox.Sandbox, err error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return nil, err
	}
	err = s.store.View(ctx, func(tx store.Tx) (err error) {
		if sandbox.ValidID(ref) {
			box, err = tx.Sandboxes().Get(sandbox.ID(ref))
			if err == nil && box.Project == c.Project {
				return nil
			}
			if err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		box, err = tx.Sandboxes().ByKey(c.Project, ref)
		return err
	})
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Wrap(fault.NotFound, err, "there is no sandbox %q", sandbox.Clip(ref, 80)).WithRemedy("list the sandboxes to see which there are")
	}
	return box, err
}

func (s *Service) stats(ctx context.Context, box *sandbox.Sandbox) (Stats, error) {
	out := Stats{Sandbox: box}
	if box.State != sandbox.Running && box.State != sandbox.Paused {
		return out, nil
	}
	k, err := s.read(ctx, box, false)
	if fault.Is(err, fault.State) || fault.Is(err, fault.NotFound) {
		return out, nil // it went down meanwhile
	}
	if err != nil {
		return Stats{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	last := k.last
	out.Now, out.History = &last, k.hour.since(s.now())
	return out, nil
}
