// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Noun is what a record is of.
type Noun string

// The nouns.
const (
	Sandbox  Noun = "sandbox"
	Snapshot Noun = "snapshot"
	Volume   Noun = "volume"
	Template Noun = "template"
	Image    Noun = "image"
)

const (
	created = "created"
	updated = "updated"
	deleted = "deleted"
)

// Types returns the types of events.
func Types() []string {
	return []string{
		"sandbox.created", "sandbox.started", "sandbox.ready", "sandbox.updated", "sandbox.paused", "sandbox.resumed", "sandbox.stopped",
		"sandbox.restored", "sandbox.promoted", "sandbox.archived", "sandbox.unarchived", "sandbox.failed", "sandbox.deleted",
		"snapshot.created", "snapshot.ready", "snapshot.updated", "snapshot.archived", "snapshot.unarchived", "snapshot.deleted",
		"volume.created", "volume.ready", "volume.updated", "volume.expired", "volume.deleted",
		"template.created", "template.updated", "template.deleted",
		"image.created", "image.updated", "image.deleted",
	}
}

// CheckTypes checks a list of types: each is one of [Types], or a noun for all of that.
func CheckTypes(field string, types []string) error {
	known := Types()
	for _, t := range types {
		if !slices.ContainsFunc(known, func(k string) bool { return matches(t, k) }) {
			return fault.InvalidField(field, "%q is no type of event", sandbox.Clip(t, 40)).
				WithRemedy("use sandbox, snapshot, volume, template or image for all of one, or some of %s", strings.Join(known, ", "))
		}
	}
	return nil
}

func matches(asked, is string) bool {
	noun, _, _ := strings.Cut(is, ".")
	return asked == is || asked == noun
}

// Event is one change of a record.
type Event struct {
	Seq     int64  // grows by one per event of the whole server
	ID      string // for who wants to go on behind it
	Type    string
	At      time.Time
	Project string // "": it is the server's
	Actor   string // who; "": not known
	Via     string
	Subject string          // the id of what changed
	Object  json.RawMessage // how that is shown after the change; of what was deleted as it was before
	text    once
}

type once struct {
	sync.Once
	b []byte
}

// Text returns what form makes of the event. It is made once, and all who follow share it.
func (e *Event) Text(form func(*Event) []byte) []byte {
	e.text.Do(func() { e.text.b = form(e) })
	return e.text.b
}

// Matches reports whether the event is of a project, or of the server, and of one of the types; none: of any.
func (e *Event) Matches(project string, types []string) bool {
	return (e.Project == project || e.Project == "") &&
		(len(types) == 0 || slices.ContainsFunc(types, func(t string) bool { return matches(t, e.Type) }))
}

// Query is what somebody follows.
type Query struct {
	Project string   // of a project; "": the caller's own; "*": of all, for the server's administrator
	Types   []string // only these, see [CheckTypes]; none: all
	After   string   // the ID of the last event that was seen; "": from now on; Oldest: all that are kept
	Once    bool     // end behind the newest event that there is
}

// Oldest is where a follower begins who wants all events that are kept.
const Oldest = "0"

// Follower is whom events are told.
type Follower struct {
	// Begun is called once, before any event: what is committed from now on is told. id is where to go on. With gap
	// true events may be missing before that, for q.After is not known any more: list anew.
	Begun func(id string, gap bool) error
	// Told is called with events, oldest first. Where they are none, all up to id were of others.
	Told func(all []*Event, id string) error
	// Gap is called where who follows was so slow that events are missing, for they are not kept any more.
	Gap func(id string) error
	// Beat is called once in each Every, never while another call is under way; nil: it is not.
	Beat  func() error
	Every time.Duration
}

// Follow tells of events until ctx is done, or the follower returns an error; with q.Once until there are no more. It ends with fault.Exhausted where too
// many follow.
func (l *Log) Follow(ctx context.Context, c access.Caller, q Query, f Follower) error {
	project, err := l.check(c, &q)
	if err != nil {
		return err
	}
	leave, err := l.join()
	if err != nil {
		return err
	}
	defer leave()
	seq, gap, err := l.position(ctx, q.After)
	if err != nil {
		return err
	}
	id := q.After
	if id == "" || id == Oldest || gap {
		if id, err = l.idAt(ctx, seq); err != nil {
			return err
		}
	}
	if err := f.Begun(id, gap); err != nil {
		return err
	}
	var beat <-chan time.Time
	if f.Beat != nil {
		every := time.NewTicker(f.Every)
		defer every.Stop()
		beat = every.C
	}
	passed := 0 // events of others since the follower heard something
	for {
		all, wait, err := l.after(ctx, seq)
		if err != nil {
			return err
		}
		if len(all) == 0 && q.Once {
			return nil
		}
		if len(all) == 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-beat:
				if err := f.Beat(); err != nil {
					return err
				}
			case <-wait:
			}
			continue
		}
		select {
		case <-beat:
			if err := f.Beat(); err != nil {
				return err
			}
		default:
		}
		if all[0].Seq > seq+1 {
			lost, err := l.pruned(ctx, seq)
			if err != nil {
				return err
			}
			if lost {
				if err := f.Gap(all[0].ID); err != nil {
					return err
				}
			}
		}
		last := all[len(all)-1]
		var told []*Event
		for _, e := range all {
			if project == "*" && e.Matches(e.Project, q.Types) || e.Matches(project, q.Types) {
				told = append(told, e)
			}
		}
		passed += len(all)
		if len(told) > 0 || passed >= page {
			passed = 0
			if err := f.Told(told, last.ID); err != nil {
				return err
			}
		}
		seq = last.Seq
	}
}

// check returns the project that a caller follows; "*": all.
func (l *Log) check(c access.Caller, q *Query) (string, error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return "", err
	}
	if err := CheckTypes("type", q.Types); err != nil {
		return "", err
	}
	if q.Project == "" || q.Project == c.Project {
		return c.Project, nil
	}
	return q.Project, c.Require(access.ServerAdmin)
}

func (l *Log) join() (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.follow >= l.most {
		return nil, fault.New(fault.Exhausted, "%d streams of events are open, and the server has no more", l.follow).
			WithRemedy("close some; one stream has the events of the whole project")
	}
	l.follow++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.follow--
	}, nil
}

// idOf is the id of an event: its number, and its time, which no other server's event of that number has.
func idOf(c *store.Change) string {
	return strconv.FormatInt(c.Seq, 10) + "-" + strconv.FormatInt(c.At.UnixMicro(), 36)
}

// position returns the number behind which a follower goes on. Where the id is of an event that is not kept any more,
// or of another server, gap is true.
func (l *Log) position(ctx context.Context, id string) (seq int64, gap bool, err error) {
	number, _, _ := strings.Cut(id, "-")
	if id != "" && id != Oldest {
		if seq, err = strconv.ParseInt(number, 10, 64); err != nil || seq < 0 {
			return 0, false, fault.InvalidField("Last-Event-ID", "%q is no id of an event", sandbox.Clip(id, 40)).
				WithRemedy("send the id of the last event that was seen, or leave it out to begin with what happens from now on")
		}
	}
	err = l.store.View(ctx, func(tx store.Tx) error {
		oldest, newest, err := tx.Changes().Bounds()
		switch {
		case err != nil:
			return err
		case id == Oldest:
			seq = max(0, oldest-1)
			return nil
		case id == "":
			seq = newest
			return nil
		}
		at, err := l.at(tx, seq)
		if err == nil && at != id { // or it is none of ours
			seq, gap = newest, true
		}
		return err
	})
	return seq, gap, err
}

// idAt returns the id of the event with a number; of none that of a server without events.
func (l *Log) idAt(ctx context.Context, seq int64) (id string, err error) {
	err = l.store.View(ctx, func(tx store.Tx) (err error) { id, err = l.at(tx, seq); return err })
	return id, err
}

// none is the id of the place before the first event.
const none = "0-0"

// at returns the id of the event with a number; "": there is none.
func (l *Log) at(tx store.Tx, seq int64) (string, error) {
	if seq == 0 {
		oldest, _, err := tx.Changes().Bounds()
		if oldest > 1 || err != nil {
			return "", err
		}
		return none, nil
	}
	rows, err := tx.Changes().List(seq-1, 1)
	if err != nil || len(rows) == 0 || rows[0].Seq != seq {
		return "", err
	}
	return idOf(rows[0]), nil
}

// pruned reports whether the event with a number is not kept any more.
func (l *Log) pruned(ctx context.Context, seq int64) (gone bool, err error) {
	err = l.store.View(ctx, func(tx store.Tx) error {
		oldest, _, err := tx.Changes().Bounds()
		gone = oldest > seq+1
		return err
	})
	return gone, err
}
