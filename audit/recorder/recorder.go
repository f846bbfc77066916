// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package recorder keeps the audit log of a server.
//
// What changes records tells the log by itself: a store that wraps the server's own adds, in the transaction that
// commits an event, the row that tells of it, so that neither is there without the other. A command's row is that of its
// end; one that goes on for longer than a second has another that says so. Calls that leave no event, those that only
// read and those that are refused, are added behind their answer, many in one transaction. Heads are signed
// within a second of a row, and that of the first row in its transaction.
package recorder

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"sandpit.dev/audit"
	"sandpit.dev/fault"
	"sandpit.dev/internal/excerpt"
	"sandpit.dev/store"
)

// Options of a [Recorder].
type Options struct {
	Writer string        // the chain that it writes; required
	Key    audit.Key     // required
	Output int           // bytes of each end of what a command writes; below zero: none, zero: all that there are, 2 KiB
	Keep   time.Duration // rows are deleted after that; zero: 90 days
	Count  int           // and beyond the newest so many; zero: 5,000,000
	// Redact takes values of secrets out of text; nil: there are none. What events say is free of them already.
	Redact  func(string) string
	Version string // of the server
	Now     func() time.Time
	Logger  *slog.Logger
}

// system is whom records name that no caller brought about.
const system = "system"

const (
	defaultKeep  = 90 * 24 * time.Hour
	defaultCount = 5_000_000
)

// Recorder writes the rows of a server. It is safe for concurrent use.
type Recorder struct {
	store store.Store
	o     Options
	log   *slog.Logger

	turn  chan struct{} // holds one token: its holder writes the queue
	pages sync.RWMutex  // held for reading while a chain is walked, and for writing while rows are deleted

	wake chan struct{} // holds one token while there is something to do
	room chan struct{} // holds one token while the queue may have room again

	mu      sync.Mutex
	queue   []*audit.Record
	lost    int                  // records that had no room
	made    map[int64]audit.Hash // of the rows that this recorder knows to be its own and that no head is signed of, by Seq
	foreign int64                // the Seq of a newest row that is not its own, and of which a row tells; 0: there is none
	started map[int64]*begun     // commands that run, by the Seq of their event
	watched map[watch]time.Time  // when reads of who looks on were recorded last
	unsaid  int                  // rows since the last signed head
	beats   bool                 // Run looks again by itself
	closed  bool                 // Close was called
}

// begun is a command that runs.
type begun struct {
	record audit.Record
	from   *audit.Operation // nil: not known
	at     time.Time        // by this process's clock
	told   bool             // by a row that says that it runs
}

const (
	// gather is how long a record waits for others, so that one transaction has many.
	gather = 25 * time.Millisecond
	// mostQueued bounds the records that wait; callers wait for room then, up to patience.
	mostQueued = 4096
	patience   = 5 * time.Second
	batch      = 256 // records in one transaction
	// tellAfter is after how long a command is told of that has not ended; heads are signed at the same beat.
	tellAfter  = time.Second
	maxBegun   = 10_000
	flushBound = 10 * time.Second
)

// Open returns a recorder in a store. It starts nothing. Where the newest rows are not those that an earlier recorder
// signed, a row says so.
func Open(ctx context.Context, s store.Store, o Options) (*Recorder, error) {
	if o.Writer == "" {
		return nil, fault.InvalidField("writer", "is missing")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Keep <= 0 {
		o.Keep = defaultKeep
	}
	if o.Count <= 0 {
		o.Count = defaultCount
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	switch {
	case o.Output == 0 || o.Output > excerpt.Most:
		o.Output = excerpt.Most
	case o.Output < 0:
		o.Output = 0
	}
	r := &Recorder{
		store: s, o: o, log: o.Logger, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		started: make(map[int64]*begun), made: make(map[int64]audit.Hash),
	}
	if err := r.take(ctx); err != nil {
		return nil, err
	}
	r.Add(ctx, &audit.Record{Type: audit.Up, Outcome: audit.OK, Actor: system, Via: system, Detail: r.o.Version})
	return r, nil
}

// take looks at what an earlier recorder left: its signed head, and the rows that came after it.
func (r *Recorder) take(ctx context.Context) error {
	var last, head int64
	var hash audit.Hash
	var broken error
	err := r.store.View(ctx, func(tx store.Tx) error {
		marks, err := tx.Audit().Marks(r.o.Writer)
		if err != nil {
			return err
		}
		for _, m := range marks {
			h, ok := audit.HashOf(m.Hash)
			c := audit.Checkpoint{Kind: audit.Kind(m.Kind), Writer: m.Writer, Seq: m.Seq, Hash: h, At: m.At, Signature: m.Signature}
			switch {
			case !ok || !c.Signed(r.o.Key.Public()):
				broken = fault.New(fault.Invalid, "the %s of the audit log is not signed by this server's key", m.Kind)
			case c.Kind == audit.Head:
				head, hash = c.Seq, h
			}
		}
		rows, err := since(tx, r.o.Writer, head)
		if err != nil || len(rows) == 0 && head == 0 {
			return err
		}
		if head > 0 {
			if len(rows) == 0 || rows[0].Seq != head || !same(rows[0].Hash, hash) {
				broken = fault.New(fault.Invalid, "row %d of the audit log is not the one that was signed", head)
			} else {
				rows = rows[1:]
			}
			last = head
		} else { // the first row is never without one, see append
			broken = cmp.Or[error](broken, fault.New(fault.Invalid, "the audit log has %d rows, and no signed head", len(rows)))
		}
		for _, row := range rows {
			if hash = hash.Next(row.Body); row.Seq != last+1 || !same(row.Hash, hash) {
				broken = cmp.Or[error](broken, fault.New(fault.Invalid, "row %d of the audit log does not come after the one before it", row.Seq))
			}
			last = row.Seq
		}
		return nil
	})
	if err != nil {
		return err
	}
	if broken != nil {
		r.alarm(last, broken)
		return nil
	}
	r.made[last] = hash
	return nil
}

// since returns the rows of a writer from one on that is among its last, or all.
func since(tx store.Tx, writer string, seq int64) (rows []*store.AuditRow, err error) {
	newest, err := tx.Audit().Newest(writer, 1)
	if err != nil || len(newest) == 0 {
		return nil, err
	}
	for back := int64(batch); ; back *= 4 {
		after := max(0, newest[0].ID-back)
		rows = rows[:0]
		for id := after; ; {
			page, err := tx.Audit().Chain(writer, id, batch)
			if err != nil {
				return nil, err
			}
			for _, row := range page {
				if id = row.ID; row.Seq >= seq {
					rows = append(rows, row)
				}
			}
			if len(page) < batch {
				break
			}
		}
		if after == 0 || len(rows) > 0 && rows[0].Seq <= seq {
			return rows, nil
		}
	}
}

func same(b []byte, h audit.Hash) bool {
	got, ok := audit.HashOf(b)
	return ok && got == h
}

// alarm logs that the rows up to one are not what was written, and has a row say so.
func (r *Recorder) alarm(last int64, err error) {
	r.log.Error("the audit log was changed by something else than this server; sandpit audit verify tells what", "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.foreign = last
	r.queue = append(r.queue, &audit.Record{At: r.now(), Type: audit.Altered, Outcome: audit.Failed, Actor: system, Via: system, Detail: fault.As(err).Message})
	notify(r.wake)
}

func (r *Recorder) now() time.Time { return r.o.Now().UTC().Truncate(time.Microsecond) }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Add has a record written within a moment. Its Writer, Seq and, if it has none, At are set then. While too many
// wait, Add waits, and after some seconds, or where ctx ends, the record is lost; a row tells how many were.
func (r *Recorder) Add(ctx context.Context, rec *audit.Record) {
	if rec.At.IsZero() {
		rec.At = r.now()
	}
	var timer *time.Timer
	for {
		r.mu.Lock()
		if len(r.queue) < mostQueued {
			r.queue = append(r.queue, rec)
			more := len(r.queue) < mostQueued
			r.mu.Unlock()
			notify(r.wake)
			if more {
				notify(r.room)
			}
			return
		}
		r.mu.Unlock()
		if timer == nil {
			timer = time.NewTimer(patience)
			defer timer.Stop()
		}
		select {
		case <-r.room:
			continue
		case <-timer.C:
		case <-ctx.Done():
		}
		r.mu.Lock()
		r.lost++
		r.mu.Unlock()
		return
	}
}

// Run writes what is added, signs heads and deletes what is too old, until ctx is done.
func (r *Recorder) Run(ctx context.Context) error {
	beat := time.NewTimer(tellAfter)
	defer beat.Stop()
	armed := true
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	for {
		select {
		case <-r.wake:
			if !armed {
				armed = true
				beat.Reset(tellAfter)
			}
			if !r.waits() {
				continue
			}
			t := time.NewTimer(gather)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
			}
			if ctx.Err() == nil {
				r.write(ctx, false)
			}
		case <-beat.C:
			r.tellRunning()
			r.write(ctx, true)
			if armed = r.due(); armed {
				beat.Reset(tellAfter)
			}
		case <-prune.C:
			r.pruneNow(ctx)
		case <-ctx.Done():
			return nil // Close writes what is left
		}
	}
}

// waits reports whether records wait, and notes that Run looks again by itself.
func (r *Recorder) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beats = true
	return len(r.queue) > 0
}

// due reports whether there is something for the next beat. Where there is not, the next row wakes Run.
func (r *Recorder) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beats = r.unsaid > 0 || len(r.queue) > 0 || r.lost > 0
	for _, b := range r.started {
		r.beats = r.beats || !b.told
	}
	return r.beats
}

// Close writes what is left and signs the head. It may be called twice.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		r.queue = append(r.queue, &audit.Record{At: r.now(), Type: audit.Down, Outcome: audit.OK, Actor: system, Via: system, Detail: r.o.Version})
	}
	r.mu.Unlock()
	return r.flush(ctx, true, true)
}

// write is flush, with what goes wrong in the log.
func (r *Recorder) write(ctx context.Context, sign bool) {
	if err := r.flush(ctx, false, sign); err != nil && ctx.Err() == nil {
		r.log.Error("the audit log cannot be written now; it is tried again", "error", err)
	}
}

// flush writes the queue, and with sign signs the head. With last it goes on where ctx has ended.
func (r *Recorder) flush(ctx context.Context, last, sign bool) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		r.mu.Lock()
		n := min(len(r.queue), batch)
		rows := append([]*audit.Record(nil), r.queue[:n]...)
		lost, unsaid := r.lost, r.unsaid
		r.mu.Unlock()
		if lost > 0 {
			rows = append(rows, &audit.Record{
				At: r.now(), Type: audit.Lost, Outcome: audit.Failed, Actor: system, Via: system, Bytes: int64(lost),
				Detail: "records of calls had no room while the store could not be written",
			})
		}
		if len(rows) == 0 && (unsaid == 0 || !sign) {
			return nil
		}
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushBound)
		err := r.store.Update(bound, func(tx store.Tx) error {
			for i := range rows {
				rec := *rows[i]
				if err := r.append(tx, &rec); err != nil {
					return err
				}
			}
			if !sign {
				return nil
			}
			return r.signHead(tx)
		})
		cancel()
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.queue = append(r.queue[:0], r.queue[n:]...)
		r.lost -= lost
		if r.unsaid += len(rows); sign {
			r.unsaid = max(0, r.unsaid-unsaid-len(rows))
		}
		left := len(r.queue)
		r.mu.Unlock()
		notify(r.room)
		if left == 0 {
			return nil
		}
		if !last && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// append adds a record to the chain.
func (r *Recorder) append(tx store.Tx, rec *audit.Record) error {
	seq, hash, err := tx.Audit().Last(r.o.Writer)
	if err != nil {
		return err
	}
	after, ok := audit.HashOf(hash)
	if !ok && seq > 0 {
		return fault.New(fault.Unavailable, "the last row of the audit log has no hash: the records are damaged")
	}
	rec.Writer, rec.Seq = r.o.Writer, seq+1
	body, err := rec.Encode()
	if err != nil {
		return err
	}
	next := after.Next(body)
	r.mu.Lock()
	made, own := r.made[seq]
	own = seq == 0 || own && made == after || r.foreign == seq
	r.made[rec.Seq] = next // whether or not it is committed: no other row of this number is
	r.mu.Unlock()
	if !own {
		r.alarm(seq, fault.New(fault.Invalid, "row %d of the audit log was written by something else", seq))
	}
	err = tx.Audit().Append(&store.AuditRow{
		Writer: rec.Writer, Seq: rec.Seq, At: rec.At, Type: rec.Type, Outcome: string(rec.Outcome), Project: rec.Project, Sandbox: rec.Sandbox,
		Token: rec.Token, Actor: rec.Actor, Body: body, Hash: next[:],
	})
	if err != nil || seq > 0 {
		return err
	}
	// The first row is committed together with its signed head: a log that has rows and none was changed, however soon
	// after its beginning the server ended.
	return tx.Audit().Mark(r.sign(audit.Checkpoint{Kind: audit.Head, Writer: r.o.Writer, Seq: rec.Seq, Hash: next, At: r.now()}))
}

// signHead signs the newest row, if it is one that this recorder made, or took over.
func (r *Recorder) signHead(tx store.Tx) error {
	seq, hash, err := tx.Audit().Last(r.o.Writer)
	if err != nil || seq == 0 {
		return err
	}
	h, ok := audit.HashOf(hash)
	if !ok {
		return fault.New(fault.Unavailable, "the last row of the audit log has no hash: the records are damaged")
	}
	r.mu.Lock()
	made, own := r.made[seq]
	if own && made == h {
		for n := range r.made {
			if n < seq {
				delete(r.made, n)
			}
		}
	}
	r.mu.Unlock()
	if !own || made != h {
		return nil // the next row finds it
	}
	return tx.Audit().Mark(r.sign(audit.Checkpoint{Kind: audit.Head, Writer: r.o.Writer, Seq: seq, Hash: h, At: r.now()}))
}

func (r *Recorder) sign(c audit.Checkpoint) store.AuditMark {
	r.o.Key.SignCheckpoint(&c)
	return store.AuditMark{Writer: c.Writer, Kind: string(c.Kind), Seq: c.Seq, Hash: c.Hash[:], At: c.At, Signature: c.Signature}
}

// tellRunning adds a row for each command that has run for a while and of which none tells.
func (r *Recorder) tellRunning() {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.started {
		if !b.told && now.Sub(b.at) >= tellAfter && len(r.queue) < mostQueued {
			b.told = true
			rec := b.record
			r.queue = append(r.queue, &rec)
		}
	}
}
