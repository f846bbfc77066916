// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// Store returns the log's store. What changes of records through it is in the log.
func (l *Log) Store() store.Store { return loggedStore{l.store, l} }

type loggedStore struct {
	store.Store
	l *Log
}

func (s loggedStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	var t *loggedTx
	err := s.Store.Update(ctx, func(tx store.Tx) error {
		t = &loggedTx{Tx: tx, l: s.l}
		if err := fn(t); err != nil {
			return err
		}
		return t.finish()
	})
	if err == nil && t.wrote {
		s.l.committed(t.changes)
	}
	return err
}

// loggedTx is one Update. What it has to know of its events it knows at its end.
type loggedTx struct {
	store.Tx
	l       *Log
	events  []*sandbox.Event
	changes []change
	wrote   bool // there is a row of it
}

// change is one change of a record.
type change struct {
	noun    Noun
	subject string
	project string
	did     string // created, updated or deleted
	object  any
	state   sandbox.State // of a sandbox
	told    bool          // there is a row of it
}

func (t *loggedTx) Events() store.Events       { return loggedEvents{t.Tx.Events(), t} }
func (t *loggedTx) Sandboxes() store.Sandboxes { return loggedSandboxes{t.Tx.Sandboxes(), t} }
func (t *loggedTx) Snapshots() store.Snapshots { return loggedSnapshots{t.Tx.Snapshots(), t} }
func (t *loggedTx) Volumes() store.Volumes     { return loggedVolumes{t.Tx.Volumes(), t} }
func (t *loggedTx) Templates() store.Templates { return loggedTemplates{t.Tx.Templates(), t} }

// changed notes a change. Of several of one record the last is told, and that it was made.
func (t *loggedTx) changed(c change) {
	for i := range t.changes {
		if old := &t.changes[i]; old.noun == c.noun && old.subject == c.subject {
			if old.did == created && c.did == updated {
				c.did = created
			}
			*old = c
			return
		}
	}
	t.changes = append(t.changes, c)
}

// finish adds the rows.
func (t *loggedTx) finish() error {
	for i := range t.changes {
		c := &t.changes[i]
		did, ev := c.did, t.about(c)
		if ev != nil && c.did == updated {
			_, did, _ = strings.Cut(string(ev.Type), ".")
			if alike, ok := same[ev.Type]; ok {
				did = alike
			}
		}
		if c.noun == Sandbox && c.did == updated && ev == nil && !t.l.moves(c.subject, c.state) {
			continue // it was used
		}
		object, err := json.Marshal(t.l.object(c.object))
		if err != nil {
			return fault.Wrap(fault.Internal, err, "the event of a change cannot be written")
		}
		row := &store.Change{Project: c.project, Type: string(c.noun) + "." + did, At: t.l.now(), Subject: c.subject, Object: object}
		if ev == nil && len(t.events) > 0 {
			ev = t.events[len(t.events)-1]
		}
		if ev != nil {
			row.Actor, row.Via = ev.Actor, ev.Via
		}
		if err := t.Tx.Changes().Append(row); err != nil {
			return err
		}
		c.told, t.wrote = true, true
	}
	return nil
}

// same are activities that have another name as changes of a record.
var same = map[sandbox.EventType]string{
	sandbox.EventSnapshot:       "ready",
	sandbox.EventVolume:         "ready",
	sandbox.EventSkillInstalled: updated,
	sandbox.EventNetworkGranted: updated,
}

// about returns the activity that says what a change is; nil: none does.
func (t *loggedTx) about(c *change) *sandbox.Event {
	for i := len(t.events) - 1; i >= 0; i-- {
		ev := t.events[i]
		noun, _, _ := strings.Cut(string(ev.Type), ".")
		_, alike := same[ev.Type]
		switch {
		case c.noun == Sandbox && string(ev.Sandbox) == c.subject && (noun == string(Sandbox) || alike && noun != string(Snapshot)):
			return ev
		case c.noun != Sandbox && ev.ProcessID == c.subject && noun == string(c.noun):
			return ev
		}
	}
	return nil
}

type loggedEvents struct {
	store.Events
	t *loggedTx
}

func (e loggedEvents) Append(ev *sandbox.Event) error {
	if err := e.Events.Append(ev); err != nil {
		return err
	}
	e.t.events = append(e.t.events, ev)
	return nil
}

type loggedSandboxes struct {
	store.Sandboxes
	t *loggedTx
}

func (q loggedSandboxes) Insert(s *sandbox.Sandbox) error {
	return q.changed(s, created, q.Sandboxes.Insert)
}
func (q loggedSandboxes) Update(s *sandbox.Sandbox) error {
	return q.changed(s, updated, q.Sandboxes.Update)
}

func (q loggedSandboxes) changed(s *sandbox.Sandbox, did string, write func(*sandbox.Sandbox) error) error {
	if err := write(s); err != nil {
		return err
	}
	kept := *s
	q.t.changed(change{noun: Sandbox, subject: string(s.ID), project: s.Project, did: did, object: &kept, state: s.State})
	return nil
}

func (q loggedSandboxes) Delete(id sandbox.ID) error {
	s, err := q.Sandboxes.Get(id)
	if err := q.Sandboxes.Delete(id); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	s.State = sandbox.Deleted
	q.t.changed(change{noun: Sandbox, subject: string(id), project: s.Project, did: deleted, object: s, state: s.State})
	return nil
}

type loggedSnapshots struct {
	store.Snapshots
	t *loggedTx
}

func (q loggedSnapshots) Insert(s *sandbox.Snapshot) error {
	return q.changed(s, created, q.Snapshots.Insert)
}
func (q loggedSnapshots) Update(s *sandbox.Snapshot) error {
	return q.changed(s, updated, q.Snapshots.Update)
}

func (q loggedSnapshots) changed(s *sandbox.Snapshot, did string, write func(*sandbox.Snapshot) error) error {
	if err := write(s); err != nil {
		return err
	}
	kept := *s
	q.t.changed(change{noun: Snapshot, subject: string(s.ID), project: s.Project, did: did, object: &kept})
	return nil
}

func (q loggedSnapshots) Delete(id sandbox.ID) error {
	s, err := q.Snapshots.Get(id)
	if err := q.Snapshots.Delete(id); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	q.t.changed(change{noun: Snapshot, subject: string(id), project: s.Project, did: deleted, object: s})
	return nil
}

type loggedVolumes struct {
	store.Volumes
	t *loggedTx
}

func (q loggedVolumes) Insert(v *sandbox.Volume) error {
	return q.changed(v, created, q.Volumes.Insert)
}
func (q loggedVolumes) Update(v *sandbox.Volume) error {
	return q.changed(v, updated, q.Volumes.Update)
}

func (q loggedVolumes) changed(v *sandbox.Volume, did string, write func(*sandbox.Volume) error) error {
	if err := write(v); err != nil {
		return err
	}
	kept := *v
	q.t.changed(change{noun: Volume, subject: string(v.ID), project: v.Project, did: did, object: &kept})
	return nil
}

func (q loggedVolumes) Delete(id sandbox.ID) error {
	v, err := q.Volumes.Get(id)
	if err := q.Volumes.Delete(id); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	q.t.changed(change{noun: Volume, subject: string(id), project: v.Project, did: deleted, object: v})
	return nil
}

type loggedTemplates struct {
	store.Templates
	t *loggedTx
}

func (q loggedTemplates) Insert(m *template.Template) error {
	return q.changed(m, created, q.Templates.Insert)
}
func (q loggedTemplates) Finish(m *template.Template) error {
	return q.changed(m, updated, q.Templates.Finish)
}

func (q loggedTemplates) SetInactive(id string, inactive bool) error {
	if err := q.Templates.SetInactive(id, inactive); err != nil {
		return err
	}
	m, err := q.Get(id)
	if err == nil {
		q.t.changed(change{noun: Template, subject: id, project: m.Project, did: updated, object: m})
	}
	return err
}

func (q loggedTemplates) changed(m *template.Template, did string, write func(*template.Template) error) error {
	if err := write(m); err != nil {
		return err
	}
	kept := *m
	q.t.changed(change{noun: Template, subject: m.ID, project: m.Project, did: did, object: &kept})
	return nil
}

func (q loggedTemplates) Delete(id string) error {
	m, err := q.Templates.Get(id)
	if err := q.Templates.Delete(id); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	q.t.changed(change{noun: Template, subject: id, project: m.Project, did: deleted, object: m})
	return nil
}

// moves reports whether a sandbox whose record was written is on its way to another state, or has come from there,
// and that was not told yet.
func (l *Log) moves(id string, s sandbox.State) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, is := l.moving[id]
	if passing[s] {
		return was != s
	}
	return is
}

// committed notes what was told of sandboxes, and wakes Run.
func (l *Log) committed(changes []change) {
	l.mu.Lock()
	for _, c := range changes {
		switch {
		case c.noun != Sandbox || !c.told:
		case passing[c.state]:
			l.moving[c.subject] = c.state
		default:
			delete(l.moving, c.subject)
		}
	}
	if l.signal != nil {
		close(l.signal)
		l.signal = nil
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// passing are the states in which a sandbox does not stay.
var passing = map[sandbox.State]bool{
	sandbox.Creating: true, sandbox.Pausing: true, sandbox.Resuming: true, sandbox.Stopping: true, sandbox.Archiving: true,
	sandbox.Unarchiving: true, sandbox.Starting: true, sandbox.Restoring: true, sandbox.Deleting: true,
}

func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
