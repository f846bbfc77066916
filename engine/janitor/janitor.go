// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package janitor compares what the drivers keep with the records, and removes what no record
// owns. It knows no verb: what is being made is told to it.
//
// One loop fills pools and, in rounds, compares what the drivers keep with the records.
// What no record owns is removed after two rounds in a row have seen it, if some
// event has heard of it: anything else is another store's. A record is there before
// its driver begins and until that has ended, so that nothing is removed in the making.
package janitor

import (
	"context"
	"time"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// What the janitor does at a time is bounded, and it holds no lock while it does it. What no
// record owns is removed once two rounds in a row have seen it.
const (
	defaultRound = time.Minute // the least time from the begin of a round to the next, unless told else
	ticks        = 12          // in that time
	look         = 256         // instances, snapshots and volumes that are looked at in a tick
	most         = 32          // of them are removed in a tick

	removeBound = 2 * time.Minute // of removing one
)

// thing is what a driver keeps: an instance with its disk, processes, groups and
// sockets; a snapshot; a volume.
type thing struct {
	kind    string // see the constants
	runtime string
	id      sandbox.ID
}

const (
	kindInstance = "instance"
	kindSnapshot = "snapshot"
	kindVolume   = "volume"
)

// Options are those of a janitor.
type Options struct {
	Round time.Duration         // the least time from one look at all that the runtimes keep to the next; 0: a minute
	Spare func(sandbox.ID) bool // reports whether an instance without a record is being made, or used
	Each  func(context.Context) // called at the begin of each round
}

// Janitor is the work of one engine's loop; it is not safe for concurrent use.
type Janitor struct {
	core *core.Core
	o    Options

	began   time.Time      // of the round
	queue   []thing        // what the round has yet to look at
	now     map[thing]bool // without a record, in this round
	before  map[thing]bool // and in the last one
	foreign map[thing]bool // that were told of: no event knows them
}

// New returns a janitor that has looked at nothing.
func New(c *core.Core, o Options) *Janitor {
	if o.Round <= 0 {
		o.Round = defaultRound
	}
	for _, kind := range []string{kindInstance, kindSnapshot, kindVolume} {
		c.Metrics.JanitorRemoved.WithLabelValues(kind)
	}
	return &Janitor{core: c, o: o, now: make(map[thing]bool), before: make(map[thing]bool), foreign: make(map[thing]bool)}
}

// Round returns the least time from the begin of a round to the next.
func (j *Janitor) Round() time.Duration { return j.o.Round }

// Tick returns the time from one call of Tidy to the next.
func (j *Janitor) Tick() time.Duration { return j.o.Round / ticks }

// Tidy is one tick: it goes on with the round, or begins the next.
func (j *Janitor) Tidy(ctx context.Context, at time.Time) {
	if len(j.queue) == 0 {
		if at.Sub(j.began) < j.o.Round {
			return
		}
		j.began, j.before, j.now = at, j.now, make(map[thing]bool)
		j.queue = j.inventory(ctx)
		j.o.Each(ctx)
		j.core.Metrics.JanitorRounds.Inc()
	}
	n := min(len(j.queue), look)
	things := j.queue[:n]
	j.queue = j.queue[n:]
	orphans, err := j.ownerless(ctx, things)
	if err != nil {
		if ctx.Err() == nil {
			j.core.Log.Error("what no record owns cannot be looked for", "error", err)
		}
		return
	}
	removed := 0
	for _, t := range orphans {
		switch {
		case !j.before[t]:
			j.now[t] = true
			continue
		case removed == most:
			j.now[t] = true // the next round's
			continue
		}
		known, err := j.heardOf(ctx, t)
		if err != nil {
			j.core.Log.Error("the events of what no record owns cannot be read", "kind", t.kind, "id", t.id, "error", err)
			continue
		}
		if !known {
			j.now[t] = true
			if !j.foreign[t] {
				j.foreign[t] = true
				j.core.Metrics.JanitorForeign.Inc()
				j.leave(t)
			}
			continue
		}
		removed++
		j.collect(ctx, t)
	}
}

// leave tells that something is another store's.
func (j *Janitor) leave(t thing) {
	j.core.Log.Error("something of another store is left alone: put that store back, or delete its files by hand", "kind", t.kind, "runtime", t.runtime, "id", t.id)
}

// inventory lists what the drivers keep. What cannot be listed is for the next round.
func (j *Janitor) inventory(ctx context.Context) []thing {
	var all []thing
	for _, name := range j.core.RuntimeNames() {
		add := func(kind string, ids []sandbox.ID, err error) {
			if err != nil && ctx.Err() == nil {
				j.core.Log.Error("what a runtime holds cannot be listed", "runtime", name, "kind", kind, "error", err)
			}
			for _, id := range ids {
				all = append(all, thing{kind, name, id})
			}
		}
		d := j.core.Runtimes[name]
		handles, err := d.List(ctx)
		ids := make([]sandbox.ID, len(handles))
		for n, h := range handles {
			ids[n] = h.ID
		}
		add(kindInstance, ids, err)
		if s, ok := d.(runtime.Snapshotter); ok {
			ids, err := s.Snapshots(ctx)
			add(kindSnapshot, ids, err)
		}
		if v, ok := d.(runtime.Volumer); ok {
			ids, err := v.Volumes(ctx)
			add(kindVolume, ids, err)
		}
	}
	return all
}

// ownerless returns those of the things that no record owns, and that are not being made.
// A record is there before its driver begins, and until it has ended.
func (j *Janitor) ownerless(ctx context.Context, things []thing) (out []thing, err error) {
	err = j.core.Store.View(ctx, func(tx store.Tx) error {
		out = nil
		for _, t := range things {
			if t.kind == kindInstance && j.o.Spare(t.id) {
				continue
			}
			owner, err := recordedRuntime(tx, t)
			switch {
			case fault.Is(err, fault.NotFound):
				out = append(out, t)
			case err != nil:
				return err
			case owner != t.runtime:
				out = append(out, t)
			}
		}
		return nil
	})
	return out, err
}

// recordedRuntime returns the runtime of the record that a thing has.
func recordedRuntime(tx store.Tx, t thing) (string, error) {
	switch t.kind {
	case kindSnapshot:
		s, err := tx.Snapshots().Get(t.id)
		if err != nil {
			return "", err
		}
		return s.Runtime, nil
	case kindVolume:
		v, err := tx.Volumes().Get(t.id)
		if err != nil {
			return "", err
		}
		return v.Runtime, nil
	}
	s, err := tx.Sandboxes().Get(t.id)
	if err != nil {
		return "", err
	}
	return s.Runtime, nil
}

// heardOf reports whether a thing that no record mentions is ours to remove: a crash of the host
// took its record, or some event is about it. Those of snapshots and volumes have its id where
// those of commands have the command's. Of a volume the event has to tell of its deletion, since
// a volume is what is to outlive all else. A create commits an event before its driver begins.
func (j *Janitor) heardOf(ctx context.Context, t thing) (known bool, err error) {
	if d, ok := j.core.Runtimes[t.runtime].(runtime.Persister); ok {
		if known, err := d.Unrecorded(t.id); known || err != nil {
			return known, err
		}
	}
	q := store.EventQuery{ProcessID: string(t.id), Limit: 1}
	switch t.kind {
	case kindInstance:
		q = store.EventQuery{Sandbox: t.id, Limit: 1}
	case kindVolume:
		q.Types = []sandbox.EventType{sandbox.EventVolumeDeleted}
	}
	err = j.core.Store.View(ctx, func(tx store.Tx) error {
		page, _, err := tx.Events().List(q)
		known = len(page) > 0
		return err
	})
	return known, err
}

// collect removes an orphan. One that cannot be removed is tried again by the round
// after the next.
func (j *Janitor) collect(ctx context.Context, t thing) {
	if err := j.remove(ctx, t); err != nil {
		j.core.Log.Error("what no record owns cannot be removed; it is tried again", "kind", t.kind, "runtime", t.runtime, "id", t.id, "error", err)
		return
	}
	j.core.Metrics.JanitorRemoved.WithLabelValues(t.kind).Inc()
	j.core.Log.Warn("what no record owned was removed", "kind", t.kind, "runtime", t.runtime, "id", t.id)
}

func (j *Janitor) remove(ctx context.Context, t thing) error {
	ctx, cancel := context.WithTimeout(ctx, removeBound)
	defer cancel()
	switch d := j.core.Runtimes[t.runtime]; t.kind {
	case kindSnapshot:
		return d.(runtime.Snapshotter).RemoveSnapshot(ctx, t.id)
	case kindVolume:
		return d.(runtime.Volumer).RemoveVolume(ctx, t.id)
	default:
		inst, err := d.Open(ctx, runtime.Handle{ID: t.id})
		if err == nil {
			err = inst.Remove(ctx)
		}
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	}
}
