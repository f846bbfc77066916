// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql/driver"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// readers is how many Views run at once. A View is microseconds of work, so
// more of them would only hold more memory.
const readers = 4

// Store is a [store.Store] in an SQL data base. Make one with [Open].
type Store struct {
	file    string
	dialect dialect
	logger  *slog.Logger

	toWrite, toRead driver.Connector

	// turn holds one token: its holder writes. A channel and not a mutex, so
	// that waiting ends with the context; channels wake in order of arrival.
	turn   chan struct{}
	writer *conn // guarded by turn; nil after a failure, until the next Update

	views chan struct{} // one token for each reader

	mu      sync.Mutex
	idle    []*conn       // readers at rest, the last used on top
	changed chan struct{} // nil while no caller waits

	syncer  *syncer
	reserve *reserve
	held    *os.File // the data base's file, for its reserve

	checkAtOpen int64
	checking    atomic.Bool           // a check reads the file for a while
	damage      atomic.Pointer[error] // that a check has found
	endCheck    context.CancelFunc
	checks      sync.WaitGroup

	closing   chan struct{}
	closeOnce sync.Once
}

var _ store.Store = (*Store)(nil)

// View runs fn on a snapshot of the records. Do not call View or Update inside
// fn: it could wait for itself.
func (s *Store) View(ctx context.Context, fn func(store.Tx) error) error {
	if err := s.take(ctx, s.views); err != nil {
		return err
	}
	defer func() { s.views <- struct{}{} }()

	c, err := s.reader(ctx)
	if err != nil {
		return err
	}
	t := &tx{ctx: ctx, conn: c, dialect: &s.dialect}
	ended := false
	defer func() {
		t.conn = nil
		if !ended || ctx.Err() != nil {
			// fn panicked, a statement was interrupted, or BEGIN or COMMIT
			// failed: what state the connection is in is anyone's guess.
			c.close()
			return
		}
		s.mu.Lock()
		s.idle = append(s.idle, c)
		s.mu.Unlock()
	}()
	if _, err := c.exec(s.dialect.beginView); err != nil {
		return s.dialect.explain(ctx, err)
	}
	ferr := fn(t)
	if _, err := c.exec("COMMIT"); err != nil {
		if ferr == nil {
			ferr = s.dialect.explain(ctx, err)
		}
		return ferr
	}
	ended = true
	return ferr
}

// Update runs fn in a transaction; see [store.Store]. Do not call View or
// Update inside fn. After the disk has refused a flush every Update is
// Unavailable until the store is opened again: what the kernel holds of earlier
// commits may be lost by then, and piling more on top would hide it.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := s.take(ctx, s.turn); err != nil {
		return err
	}
	defer func() { s.turn <- struct{}{} }()

	if err := s.syncer.failed(); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the disk refused to keep the records").
			WithRemedy("look after the disk of the data directory, then start the server again")
	}
	if s.writer == nil {
		c, err := s.dialect.openConn(ctx, s.toWrite)
		if err != nil {
			return s.dialect.explain(ctx, err)
		}
		s.writer = c
	}
	if s.reserve.room() != nil {
		if err := s.relieve(s.writer); err != nil {
			s.logger.Warn("the reserve of the records cannot be used", "error", err)
		}
	}
	if _, err := s.writer.exec(s.dialect.beginUpdate); err != nil {
		s.dropWriter()
		return s.dialect.explain(ctx, err)
	}
	t := &tx{ctx: ctx, conn: s.writer, dialect: &s.dialect, write: true}
	committed := false
	defer func() {
		t.conn = nil
		if committed {
			return
		}
		// SQLite undoes some failures by itself; a second undo is an error then.
		if _, err := s.writer.exec("ROLLBACK"); err != nil {
			s.dropWriter()
		}
	}()
	if err := fn(t); err != nil {
		s.noteFull(err)
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := s.writer.exec("COMMIT"); err != nil {
		err = s.dialect.explain(ctx, err)
		s.noteFull(err)
		return err
	}
	committed = true
	s.syncer.committed()
	s.wake()
	return nil
}

// Room is nil, fault.Full, or Unavailable where the records are damaged; see [store.Store].
func (s *Store) Room() error {
	if p := s.damage.Load(); p != nil {
		return *p
	}
	return s.reserve.room()
}

// Changed is closed at the next commit.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

func (s *Store) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Close waits for the transactions under way, flushes and closes. Twice is
// fine. Later Views and Updates are Unavailable.
func (s *Store) Close() error {
	var err error
	s.closeOnce.Do(func() {
		close(s.closing)
		s.endCheck()
		s.checks.Wait()
		<-s.turn
		for range readers {
			<-s.views
		}
		err = s.shut()
	})
	return err
}

// shut ends what [Open] began; no transaction is under way.
func (s *Store) shut() error {
	err := s.syncer.close()
	for _, c := range s.idle {
		c.close()
	}
	s.idle = nil
	// The last connection that closes moves the log into the file and flushes
	// it: the writer goes last, for readers may not write.
	if s.writer != nil {
		s.dropWriter()
	}
	_ = s.held.Close()
	return err
}

// take waits for a token.
func (s *Store) take(ctx context.Context, tokens chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closing:
	default:
		select {
		case <-tokens:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
		}
	}
	return fault.New(fault.Unavailable, "the store is closed")
}

func (s *Store) reader(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return c, nil
	}
	s.mu.Unlock()
	c, err := s.dialect.openConn(ctx, s.toRead)
	return c, s.dialect.explain(ctx, err)
}

// noteFull has the disk looked at, and the log's room used again, where a write found none.
func (s *Store) noteFull(err error) {
	if e := fault.As(err); err != nil && e.Code == fault.Full && e.Disk == fault.RecordsDisk {
		s.reserve.ranOut()
		s.syncer.checkpointSoon()
	}
}

func (s *Store) dropWriter() {
	s.writer.close()
	s.writer = nil
}
