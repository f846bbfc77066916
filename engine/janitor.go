// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// The janitor's work: what it does at a time is bounded, and it holds no lock while it
// does it. What no record owns is removed once two rounds in a row have seen it.
const (
	janitorRound = time.Minute // the least time from the begin of a round to the next, unless told else
	janitorTicks = 12          // in that time
	janitorLook  = 256         // instances, snapshots and volumes that are looked at in a tick
	janitorMost  = 32          // of them are removed in a tick
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

// janitor is the state of the loop that tidies up while the server runs. It belongs
// to that loop.
type janitor struct {
	began   time.Time      // of the round
	queue   []thing        // what the round has yet to look at
	now     map[thing]bool // without a record, in this round
	before  map[thing]bool // and in the last one
	foreign map[thing]bool // that were told of: no event knows them
}

func newJanitor() *janitor {
	return &janitor{now: make(map[thing]bool), before: make(map[thing]bool), foreign: make(map[thing]bool)}
}

// runJanitor fills pools and collects what no record owns, until ctx is done.
func (e *Engine) runJanitor(ctx context.Context) {
	j := newJanitor()
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := time.Now().Add(e.round / janitorTicks)
	for {
		wait := e.fillPools(ctx)
		if at := time.Now(); !at.Before(next) {
			e.tidy(ctx, j, at)
			next = at.Add(e.round / janitorTicks)
		}
		timer.Reset(min(wait, time.Until(next)))
		select {
		case <-ctx.Done():
			return
		case <-e.pools.wake:
		case <-timer.C:
		}
	}
}

// tidy is one tick: it goes on with the round, or begins the next.
func (e *Engine) tidy(ctx context.Context, j *janitor, at time.Time) {
	if len(j.queue) == 0 {
		if at.Sub(j.began) < e.round {
			return
		}
		j.began, j.before, j.now = at, j.now, make(map[thing]bool)
		j.queue = e.inventory(ctx)
		e.askBusy(ctx)
		e.metrics.JanitorRounds.Inc()
	}
	n := min(len(j.queue), janitorLook)
	look := j.queue[:n]
	j.queue = j.queue[n:]
	orphans, err := e.ownerless(ctx, look)
	if err != nil {
		if ctx.Err() == nil {
			e.log.Error("what no record owns cannot be looked for", "error", err)
		}
		return
	}
	removed := 0
	for _, t := range orphans {
		switch {
		case !j.before[t]:
			j.now[t] = true
			continue
		case removed == janitorMost:
			j.now[t] = true // the next round's
			continue
		}
		known, err := e.heardOfThing(ctx, t)
		if err != nil {
			e.log.Error("the events of what no record owns cannot be read", "kind", t.kind, "id", t.id, "error", err)
			continue
		}
		if !known {
			j.now[t] = true
			if !j.foreign[t] {
				j.foreign[t] = true
				e.metrics.JanitorForeign.Inc()
				e.log.Error("something of another store is left alone: put that store back, or delete its files by hand", "kind", t.kind, "runtime", t.runtime, "id", t.id)
			}
			continue
		}
		removed++
		e.collect(ctx, t)
	}
}

// inventory lists what the drivers keep. What cannot be listed is for the next round.
func (e *Engine) inventory(ctx context.Context) []thing {
	var all []thing
	for _, name := range e.runtimeNames() {
		add := func(kind string, ids []sandbox.ID, err error) {
			if err != nil && ctx.Err() == nil {
				e.log.Error("what a runtime holds cannot be listed", "runtime", name, "kind", kind, "error", err)
			}
			for _, id := range ids {
				all = append(all, thing{kind, name, id})
			}
		}
		d := e.runtimes[name]
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
func (e *Engine) ownerless(ctx context.Context, things []thing) (out []thing, err error) {
	err = e.store.View(ctx, func(tx store.Tx) error {
		out = nil
		for _, t := range things {
			if t.kind == kindInstance && (e.pools.owns(t.id) || e.holdsBox(t.id)) {
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

// holdsBox reports whether a verb is at the sandbox, or it runs.
func (e *Engine) holdsBox(id sandbox.ID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.entries[id] != nil
}

// heardOfThing reports whether any event is about the thing: those of snapshots and
// volumes have its id where those of commands have the command's. Of a volume it has to
// tell of its deletion, since a volume is what is to outlive all else.
func (e *Engine) heardOfThing(ctx context.Context, t thing) (known bool, err error) {
	if known, err := e.unrecorded(t.runtime, t.id); known || err != nil {
		return known, err
	}
	if t.kind == kindInstance {
		return e.disposable(ctx, t.runtime, t.id)
	}
	q := store.EventQuery{ProcessID: string(t.id), Limit: 1}
	if t.kind == kindVolume {
		q.Types = []sandbox.EventType{sandbox.EventVolumeDeleted}
	}
	err = e.store.View(ctx, func(tx store.Tx) error {
		page, _, err := tx.Events().List(q)
		known = len(page) > 0
		return err
	})
	return known, err
}

// collect removes an orphan. One that cannot be removed is tried again by the round
// after the next.
func (e *Engine) collect(ctx context.Context, t thing) {
	ctx, cancel := context.WithTimeout(ctx, reconcileBound)
	defer cancel()
	var err error
	switch d := e.runtimes[t.runtime]; t.kind {
	case kindSnapshot:
		err = d.(runtime.Snapshotter).RemoveSnapshot(ctx, t.id)
	case kindVolume:
		err = d.(runtime.Volumer).RemoveVolume(ctx, t.id)
	default:
		err = removeStranger(ctx, d, runtime.Handle{ID: t.id})
	}
	if err != nil {
		e.log.Error("what no record owns cannot be removed; it is tried again", "kind", t.kind, "runtime", t.runtime, "id", t.id, "error", err)
		return
	}
	e.metrics.JanitorRemoved.WithLabelValues(t.kind).Inc()
	e.log.Warn("what no record owned was removed", "kind", t.kind, "runtime", t.runtime, "id", t.id)
}
