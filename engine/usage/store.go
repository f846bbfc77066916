// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Store returns the recorder's store. What changes of a sandbox's figures and of its state is added to
// what its project used in the same transaction: by every verb, and none has to think of it.
func (r *Recorder) Store() store.Store { return countedStore{r.store, r} }

type countedStore struct {
	store.Store
	r *Recorder
}

func (s countedStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error {
		t := &countedTx{Tx: tx, now: s.r.now()}
		if err := fn(t); err != nil {
			return err
		}
		return t.finish()
	})
}

// countedTx is one Update. What it has to know of its events it knows at its end.
type countedTx struct {
	store.Tx
	now     time.Time
	actor   string    // whom its last event names; "": none, or the server itself
	at      time.Time // of its last event
	made    []*sandbox.Sandbox
	tallies []tally
	gone    []sandbox.ID
}

// tally is how a record's figures grew.
type tally struct {
	of  *sandbox.Sandbox
	use store.Used
}

func (t *countedTx) Events() store.Events       { return countedEvents{t.Tx.Events(), t} }
func (t *countedTx) Sandboxes() store.Sandboxes { return countedSandboxes{t.Tx.Sandboxes(), t} }

// system is whom events name that no caller began.
const system = "system"

type countedEvents struct {
	store.Events
	t *countedTx
}

func (e countedEvents) Append(ev *sandbox.Event) error {
	e.t.note(ev)
	return e.Events.Append(ev)
}

func (e countedEvents) Finish(ev *sandbox.Event) error {
	e.t.note(ev)
	return e.Events.Finish(ev)
}

func (t *countedTx) note(ev *sandbox.Event) {
	if !ev.At.IsZero() {
		t.at = ev.At
	}
	if ev.Actor != "" && ev.Actor != system {
		t.actor = ev.Actor
	}
}

type countedSandboxes struct {
	store.Sandboxes
	t *countedTx
}

func (q countedSandboxes) Insert(s *sandbox.Sandbox) error {
	if err := q.Sandboxes.Insert(s); err != nil {
		return err
	}
	kept := *s
	q.t.made = append(q.t.made, &kept)
	return nil
}

func (q countedSandboxes) Update(s *sandbox.Sandbox) error {
	if err := q.counted(s, q.Sandboxes.Update); err != nil {
		return err
	}
	return q.t.moved(s)
}

func (q countedSandboxes) Tally(s *sandbox.Sandbox) error { return q.counted(s, q.Sandboxes.Tally) }

// counted notes what a change adds to a record's figures.
func (q countedSandboxes) counted(s *sandbox.Sandbox, change func(*sandbox.Sandbox) error) error {
	old, err := q.t.Usage().Tallied(s.ID, s.Revision)
	if err != nil {
		return err
	}
	if err := change(s); err != nil {
		return err
	}
	u := store.Used{
		Project: s.Project, Time: q.t.now, Commands: s.ExecCount - old.Commands, ExecTime: s.ExecTime - old.ExecTime,
		Uploaded: s.BytesUploaded - old.Uploaded, Downloaded: s.BytesDownloaded - old.Downloaded,
	}
	if u.Commands != 0 || u.ExecTime != 0 || u.Uploaded != 0 || u.Downloaded != 0 {
		q.t.tallies = append(q.t.tallies, tally{s, u})
	}
	return nil
}

func (q countedSandboxes) Delete(id sandbox.ID) error {
	if err := q.Sandboxes.Delete(id); err != nil {
		return err
	}
	q.t.gone = append(q.t.gone, id)
	return nil
}

// moved adds the time of a sandbox whose record was just replaced, where it counts otherwise from now on.
func (t *countedTx) moved(s *sandbox.Sandbox) error {
	for _, made := range t.made {
		if made.ID == s.ID { // in this transaction: it has no meter yet
			*made = *s
			return nil
		}
	}
	m, err := t.Usage().Meter(s.ID)
	if err != nil {
		return err
	}
	if m == nil {
		m = begin(s, "")
		return t.Usage().PutMeter(m)
	}
	next := begin(s, m.Token)
	if m.Running == next.Running && m.Kept == next.Kept && m.CPU == next.CPU && m.MemoryMB == next.MemoryMB && m.DiskMB == next.DiskMB &&
		(!m.Running || !m.RunUntil.Before(s.RunningSince)) && (m.Running || m.Run == s.RunTime) {
		return nil
	}
	at := s.UpdatedAt
	// What it ran in all is on its record: whatever a clock did meanwhile, that is what is added up.
	ran := s.RunTime
	if m.Running && next.Running && !m.RunUntil.Before(s.RunningSince) { // its limits changed
		ran += max(at.Sub(s.RunningSince), 0)
	}
	if err := t.addTime(m, ran, at); err != nil {
		return err
	}
	next.Run, next.DiskUntil = m.Run, m.DiskUntil
	if !m.Kept {
		next.DiskUntil = at
	}
	if m.Running && next.RunUntil.Before(m.RunUntil) {
		next.RunUntil = m.RunUntil
	}
	return t.Usage().PutMeter(next)
}

// begin returns the meter of a sandbox that counts from now on.
func begin(s *sandbox.Sandbox, token string) *store.UsageMeter {
	return &store.UsageMeter{
		Sandbox: s.ID, Project: s.Project, Token: token,
		CPU: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB, DiskMB: s.Limits.DiskMB,
		Running: !s.RunningSince.IsZero(), Kept: s.State != sandbox.Archived && s.State != sandbox.Unarchiving,
		Run: s.RunTime, RunUntil: s.RunningSince, DiskUntil: s.UpdatedAt,
	}
}

// addTime adds what a meter counts until it has run for ran in all, and until at of its disk, and moves it on.
func (t *countedTx) addTime(m *store.UsageMeter, ran time.Duration, at time.Time) error {
	return addTime(m, ran, at, t.Usage().Add)
}

func addTime(m *store.UsageMeter, ran time.Duration, at time.Time, add func(store.Used) error) error {
	if more := ran - m.Run; m.Running && more > 0 {
		err := hours(m.RunUntil, m.RunUntil.Add(more), func(hour time.Time, d time.Duration) error {
			return add(store.Used{Project: m.Project, Token: m.Token, Time: hour, RunTime: d,
				CPUSeconds: m.CPU * d.Seconds(), MemorySeconds: float64(m.MemoryMB) / 1024 * d.Seconds()})
		})
		if err != nil {
			return err
		}
		m.Run, m.RunUntil = ran, m.RunUntil.Add(more)
	}
	if m.Kept && at.After(m.DiskUntil) {
		err := hours(m.DiskUntil, at, func(hour time.Time, d time.Duration) error {
			return add(store.Used{Project: m.Project, Token: m.Token, Time: hour, DiskSeconds: float64(m.DiskMB) / 1024 * d.Seconds()})
		})
		if err != nil {
			return err
		}
		m.DiskUntil = at
	}
	return nil
}

// hours calls do for each hour of a time, with how much of it is in that.
func hours(from, to time.Time, do func(hour time.Time, d time.Duration) error) error {
	for from = from.UTC(); from.Before(to); {
		hour := from.Truncate(time.Hour)
		end := hour.Add(time.Hour)
		if end.After(to) {
			end = to
		}
		if err := do(hour, end.Sub(from)); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// finish writes what the transaction's end had to be waited for.
func (t *countedTx) finish() error {
	for _, s := range t.made {
		m := begin(s, t.actor)
		m.DiskUntil = s.CreatedAt
		if err := t.Usage().PutMeter(m); err != nil {
			return err
		}
	}
	for _, one := range t.tallies {
		if one.use.Token = t.actor; one.use.Token == "" {
			m, err := t.Usage().Meter(one.of.ID)
			if err != nil {
				return err
			}
			if m != nil {
				one.use.Token = m.Token
			}
		}
		if err := t.Usage().Add(one.use); err != nil {
			return err
		}
	}
	for _, id := range t.gone {
		m, err := t.Usage().Meter(id)
		if err != nil || m == nil {
			return err
		}
		at := t.at
		if at.IsZero() {
			at = t.now
		}
		ran := m.Run
		if m.Running {
			ran += max(at.Sub(m.RunUntil), 0)
		}
		if err := t.addTime(m, ran, at); err != nil {
			return err
		}
		if err := t.Usage().DeleteMeter(id); err != nil {
			return err
		}
	}
	return nil
}
