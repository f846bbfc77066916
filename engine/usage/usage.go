// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package usage records what projects use of the server, so that it outlives their sandboxes: commands, the time that
// sandboxes run, what they are promised of processors, memory and disk meanwhile, bytes up and down; by project, token
// and hour.
//
// The figures come from the records of sandboxes themselves. A store that wraps the server's own adds, in the
// transaction that changes a record, what it changed by; and of each sandbox it keeps up to when its time was added,
// which no crash moves. A sandbox that goes on while the server is down counts.
package usage

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Recorder records and tells what projects use. It is safe for concurrent use.
type Recorder struct {
	store store.Store
	log   *slog.Logger
	now   func() time.Time
	keep  time.Duration
}

// Options of a [Recorder].
type Options struct {
	Now    func() time.Time // nil: time.Now; as records have it
	Keep   time.Duration    // figures are deleted after that; zero: DefaultKeep; never less than LeastKeep
	Logger *slog.Logger     // nil: none
}

// New returns a recorder of what changes through its Store.
func New(s store.Store, o Options) *Recorder {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	return &Recorder{store: s, log: o.Logger, keep: max(o.Keep, LeastKeep), now: func() time.Time { return o.Now().UTC().Truncate(time.Microsecond) }}
}

// How long figures are kept. Budgets need those of the month that goes on.
const (
	DefaultKeep = 400 * 24 * time.Hour
	LeastKeep   = 32 * 24 * time.Hour
)

const (
	// addEvery is how often the time of all sandboxes is added: what is not yet is read with the sums, so
	// that none is missing in between. It bounds what a sum has to look at.
	addEvery = time.Hour
	page     = 500 // meters of one transaction
	// pruneBatch is how many figures one transaction deletes: a few milliseconds, in which others wait.
	pruneBatch = 500
)

// Run adds the time of sandboxes that do not change, now and then, until ctx is done.
func (r *Recorder) Run(ctx context.Context) error {
	tick := time.NewTicker(addEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := r.AddTime(ctx); err != nil && ctx.Err() == nil {
				r.log.Warn("what sandboxes use cannot be added up; it is tried again", "error", err)
			}
			switch n, err := r.Prune(ctx); {
			case err != nil && ctx.Err() == nil:
				r.log.Warn("figures of use that are too old cannot be deleted now; it is tried again", "error", err)
			case n > 0:
				r.log.Info("figures of use that were too old were deleted", "rows", n)
			}
		}
	}
}

// AddTime adds the time of all sandboxes until now.
func (r *Recorder) AddTime(ctx context.Context) error {
	for after := sandbox.ID(""); ; {
		var last sandbox.ID
		err := r.store.Update(ctx, func(tx store.Tx) error {
			last = ""
			all, err := tx.Usage().Meters("", after, page)
			if err != nil {
				return err
			}
			for _, m := range all {
				if err := r.addNow(m, tx.Usage().Add); err != nil {
					return err
				}
				if err := tx.Usage().PutMeter(m); err != nil {
					return err
				}
			}
			if len(all) == page {
				last = all[page-1].Sandbox
			}
			return nil
		})
		if err != nil || last == "" {
			return err
		}
		after = last
	}
}

// Prune deletes figures that are too old, and returns how many. It holds the store for a batch at a time.
func (r *Recorder) Prune(ctx context.Context) (deleted int, err error) {
	before := r.now().Add(-r.keep).Truncate(time.Hour)
	for from := ""; ; {
		var of string
		var n int
		err := r.store.Update(ctx, func(tx store.Tx) (err error) {
			of, n, err = tx.Usage().Prune(from, before, pruneBatch)
			return err
		})
		if err != nil || of == "" {
			return deleted, err
		}
		deleted += n
		if from = of; n < pruneBatch {
			from += "\x00" // the next name
		}
	}
}

func (r *Recorder) addNow(m *store.UsageMeter, add func(store.Used) error) error {
	now := r.now()
	ran := m.Run
	if m.Running {
		ran += max(now.Sub(m.RunUntil), 0)
	}
	return addTime(m, ran, now, add)
}

// Sum returns what was used until now, by what q says, in order of project, token and time.
func (r *Recorder) Sum(ctx context.Context, q store.UsageQuery) (all []store.Used, err error) {
	err = r.store.View(ctx, func(tx store.Tx) (err error) {
		all, err = r.SumIn(tx, q)
		return err
	})
	return all, err
}

// SumIn is Sum as a transaction sees it.
func (r *Recorder) SumIn(tx store.Tx, q store.UsageQuery) ([]store.Used, error) {
	q.Since, q.Until = q.Since.UTC().Truncate(time.Hour), q.Until.UTC()
	all, err := tx.Usage().Sum(q)
	if err != nil {
		return nil, err
	}
	sums := make(map[store.Used]*store.Used, len(all))
	for i := range all {
		sums[keyOf(all[i], q)] = &all[i]
	}
	add := func(u store.Used) error {
		if q.Token != "" && u.Token != q.Token || !q.Since.IsZero() && u.Time.Before(q.Since) || !q.Until.IsZero() && !u.Time.Before(q.Until) {
			return nil
		}
		key := keyOf(u, q)
		to := sums[key]
		if to == nil {
			to = &store.Used{Project: key.Project, Token: key.Token, Time: key.Time}
			sums[key] = to
		}
		to.RunTime += u.RunTime
		to.CPUSeconds += u.CPUSeconds
		to.MemorySeconds += u.MemorySeconds
		to.DiskSeconds += u.DiskSeconds
		return nil
	}
	for after := sandbox.ID(""); ; {
		meters, err := tx.Usage().Meters(q.Project, after, page)
		if err != nil {
			return nil, err
		}
		for _, m := range meters {
			if err := r.addNow(m, add); err != nil {
				return nil, err
			}
		}
		if len(meters) < page {
			break
		}
		after = meters[page-1].Sandbox
	}
	out := make([]store.Used, 0, len(sums))
	for _, u := range sums {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b store.Used) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Token, b.Token), a.Time.Compare(b.Time))
	})
	return out, nil
}

// keyOf is what sums are apart by.
func keyOf(u store.Used, q store.UsageQuery) (key store.Used) {
	if q.ByProject {
		key.Project = u.Project
	}
	if q.ByToken {
		key.Token = u.Token
	}
	switch {
	case q.ByHour:
		key.Time = u.Time.UTC().Truncate(time.Hour)
	case q.ByDay:
		key.Time = u.Time.UTC().Truncate(24 * time.Hour)
	}
	return key
}

// Used is one sum.
type Used = store.Used

// Request asks what was used. Zero fields select all.
type Request struct {
	Project      string // "": the caller's, or for AllProjects all
	AllProjects  bool   // which only the server's administrator may see
	Token        string
	Since, Until time.Time
	By           []string // of Groups; none: one sum
}

// Groups are what sums can be apart by.
func Groups() []string { return []string{"project", "token", "day", "hour"} }

// MaxRows is how many sums one answer has at most.
const MaxRows = 10_000

// Report returns what a caller's project used, or for who runs the server any.
func (r *Recorder) Report(ctx context.Context, c access.Caller, q Request) ([]Used, error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return nil, err
	}
	if q.Project == "" && !q.AllProjects {
		q.Project = c.Project
	}
	if q.Project != c.Project {
		if err := c.Require(access.ServerAdmin); err != nil {
			return nil, err
		}
	}
	if !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return nil, fault.InvalidField("until", "%s is not after since, %s", q.Until.Format(time.RFC3339), q.Since.Format(time.RFC3339))
	}
	s := store.UsageQuery{Project: q.Project, Token: q.Token, Since: q.Since, Until: q.Until}
	for _, by := range q.By {
		switch by {
		case "project":
			s.ByProject = true
		case "token":
			s.ByToken = true
		case "day":
			s.ByDay = true
		case "hour":
			s.ByHour = true
		default:
			return nil, fault.InvalidField("by", "%q is none of project, token, day and hour", sandbox.Clip(by, 40))
		}
	}
	all, err := r.Sum(ctx, s)
	if err == nil && len(all) > MaxRows {
		return nil, fault.InvalidField("by", "makes %d sums of this time, more than %d", len(all), MaxRows).WithRemedy("ask for a shorter time, or by day instead of hour")
	}
	return all, err
}
