// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Options of a [Log].
type Options struct {
	// Object returns what clients see of a record, without any value of a variable: of a *sandbox.Sandbox,
	// *sandbox.Snapshot, *sandbox.Volume, *template.Template or *image.Status. Its JSON is what is kept. Required.
	Object func(record any) any
	Keep   int64            // how many events are kept; 0: DefaultKeep
	Most   int              // how many follow at once; 0: DefaultMost
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: none
}

const (
	// DefaultKeep is how many events are kept where the options do not say: some 20 MB.
	DefaultKeep = 20_000
	// DefaultMost is how many follow at once where the options do not say.
	DefaultMost = 4096
)

const (
	recent     = 1024 // events in memory, for those who follow without delay
	page       = 256  // events of one look
	pruneEvery = 1024 // events between two looks at what is too old
	pruneBatch = 500  // rows of one transaction, a few milliseconds in which others wait
	retry      = time.Second
)

// Log keeps what changed, and tells who follows. It is safe for concurrent use.
type Log struct {
	store  store.Store
	object func(any) any
	keep   int64
	most   int
	now    func() time.Time
	log    *slog.Logger
	wake   chan struct{} // holds one token while there may be something new

	mu      sync.Mutex
	moving  map[string]sandbox.State // of sandboxes whose last event says that they are on their way
	follow  int                      // how many follow
	ring    []*Event                 // the newest, without a gap, where somebody follows
	changed chan struct{}            // closed with each addition to ring
	signal  chan struct{}            // closed at the next commit; nil while nobody waits
}

// New returns a log of what changes through its Store. It starts nothing.
func New(s store.Store, o Options) *Log {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Keep <= 0 {
		o.Keep = DefaultKeep
	}
	if o.Most <= 0 {
		o.Most = DefaultMost
	}
	return &Log{
		store: s, object: o.Object, keep: o.Keep, most: o.Most, log: o.Logger, now: func() time.Time { return utc(o.Now()) },
		wake: make(chan struct{}, 1), moving: make(map[string]sandbox.State), changed: make(chan struct{}),
	}
}

// Committed returns a channel that is closed at the next commit of an event. It is a hint to look at them.
func (l *Log) Committed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.signal == nil {
		l.signal = make(chan struct{})
	}
	return l.signal
}

// Run tells followers of what is committed, and deletes what is too old, until ctx is done.
func (l *Log) Run(ctx context.Context) error {
	l.prune(ctx)
	var pruned int64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		}
		newest, err := l.load(ctx)
		if err != nil && ctx.Err() == nil {
			l.log.Warn("events cannot be read; it is tried again", "error", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(retry):
				l.awake()
			}
			continue
		}
		if newest-pruned >= pruneEvery {
			pruned = newest
			l.prune(ctx)
		}
	}
}

func (l *Log) awake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// load brings what is new into memory, and wakes followers. It returns the newest that there is.
func (l *Log) load(ctx context.Context) (newest int64, err error) {
	l.mu.Lock()
	needed, after := l.follow > 0, int64(0)
	if !needed {
		l.ring = nil
	} else if n := len(l.ring); n > 0 {
		after = l.ring[n-1].Seq
	}
	l.mu.Unlock()
	for more := true; more; {
		var rows []*store.Change
		var oldest int64
		err := l.store.View(ctx, func(tx store.Tx) (err error) {
			if oldest, newest, err = tx.Changes().Bounds(); err != nil || !needed {
				return err
			}
			if after == 0 {
				after = max(0, newest-page)
			}
			rows, err = tx.Changes().List(after, page)
			return err
		})
		if err != nil {
			return 0, err
		}
		if more = len(rows) == page; len(rows) == 0 {
			continue
		}
		l.mu.Lock()
		if oldest > after+1 { // some were deleted before they were read: who is behind looks in the store, and sees it
			l.ring = nil
		}
		after = rows[len(rows)-1].Seq
		for _, c := range rows {
			l.ring = append(l.ring, Of(c))
		}
		if over := len(l.ring) - recent; over > 0 {
			l.ring = append(l.ring[:0:0], l.ring[over:]...)
		}
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
	}
	return newest, nil
}

// after returns events behind one, oldest first: out of memory, or where they are not there out of the store. Where
// there is none it returns a channel that is closed when there may be.
func (l *Log) after(ctx context.Context, seq int64) (out []*Event, wait <-chan struct{}, err error) {
	l.mu.Lock()
	wait = l.changed
	if n := len(l.ring); n > 0 && l.ring[0].Seq <= seq+1 {
		first := max(0, int(seq+1-l.ring[0].Seq)) // their numbers have no gap but where a transaction was undone
		for first = min(first, n); first > 0 && l.ring[first-1].Seq > seq; first-- {
		}
		out = l.ring[first:min(n, first+page)]
		l.mu.Unlock()
		return out, wait, nil
	}
	l.mu.Unlock()
	err = l.store.View(ctx, func(tx store.Tx) error {
		rows, err := tx.Changes().List(seq, page)
		for _, c := range rows {
			out = append(out, Of(c))
		}
		return err
	})
	return out, wait, err
}

// Of returns the event of a row.
func Of(c *store.Change) *Event {
	return &Event{
		Seq: c.Seq, ID: idOf(c), Type: c.Type, At: c.At.UTC(), Project: c.Project, Actor: c.Actor, Via: c.Via, Subject: c.Subject,
		Object: json.RawMessage(c.Object),
	}
}

// prune deletes all but the newest.
func (l *Log) prune(ctx context.Context) {
	var oldest, newest int64
	err := l.store.View(ctx, func(tx store.Tx) (err error) {
		oldest, newest, err = tx.Changes().Bounds()
		return err
	})
	for n := pruneBatch; err == nil && n == pruneBatch && newest-oldest >= l.keep; {
		err = l.store.Update(ctx, func(tx store.Tx) (err error) {
			n, err = tx.Changes().Prune(newest-l.keep, pruneBatch)
			return err
		})
	}
	if err != nil && ctx.Err() == nil {
		l.log.Warn("old events cannot be deleted; it is tried again", "error", err)
	}
}
