// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func TestSyncer(t *testing.T) {
	silent := slog.New(slog.DiscardHandler)
	none := func() error { return nil }
	nothing := func() int64 { return 0 }
	short := func() bool { return false }

	t.Run("CommitsShareAFlushWithinASecond", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var flushed []time.Duration
			begin := time.Now()
			y := newSyncer(func() error { flushed = append(flushed, time.Since(begin)); return nil }, nothing, short, none, func() {}, silent)
			y.start()
			for range 100 { // one second of commits
				y.committed()
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Hour)
			if err := y.close(); err != nil {
				t.Error(err)
			}
			if n := len(flushed); n < 15 || n > 18 {
				t.Errorf("got %d flushes, want about seventeen", n)
			}
			if last := flushed[len(flushed)-1]; last > 2*time.Second {
				t.Errorf("the last flush was at %s", last)
			}
			for i, at := range flushed[1:] {
				if at-flushed[i] < syncEvery {
					t.Errorf("a flush came %s after the one before", at-flushed[i])
				}
			}
		})
	})
	t.Run("DisksComeFirst", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var d disks
			var begin time.Time
			failing := error(nil)
			y := newSyncer(func() error {
				d.did = append(d.did, "flush")
				time.Sleep(time.Second)
				return failing
			}, nothing, short, func() error { d.did = append(d.did, "checkpoint"); return nil }, func() {}, silent)
			(&Store{syncer: y}).Follow(&d)
			y.start()
			for _, wait := range []time.Duration{syncDisksEvery, syncEvery} {
				d.did, d.pending, begin = nil, wait == syncDisksEvery, time.Now()
				y.committed()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if want := []string{"persist", "flush", "mark"}; !slices.Equal(d.did, want) || d.at.Sub(begin) != wait {
					t.Errorf("did %v, up to %s, want %v up to %s", d.did, d.at.Sub(begin), want, wait)
				}
			}
			d.did, d.err = nil, errors.New("the store failed")
			y.checkpointSoon()
			synctest.Wait()
			if want := []string{"persist", "checkpoint"}; !slices.Equal(d.did, want) {
				t.Errorf("did %v, want %v", d.did, want)
			}
			d.did, failing = nil, errors.New("i/o error")
			y.committed()
			if err := y.close(); err == nil {
				t.Error("a failed flush is no error")
			}
			if want := []string{"persist", "flush"}; !slices.Equal(d.did, want) {
				t.Errorf("did %v, want %v", d.did, want)
			}
		})
	})
	t.Run("CloseFlushesWhatIsLeft", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			flushes, released := 0, false
			y := newSyncer(func() error { flushes++; return nil }, nothing, short, none, func() { released = true }, silent)
			y.start()
			y.committed()
			if err := y.close(); err != nil || flushes != 1 || !released {
				t.Errorf("got %d flushes, released %v, %v, want one, true, nil", flushes, released, err)
			}
		})
	})
	t.Run("ARefusedFlushIsRememberedAndNotTriedAgain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			flushes, eio := 0, errors.New("input/output error")
			y := newSyncer(func() error { flushes++; return eio }, nothing, short, none, func() {}, silent)
			y.start()
			for range 5 {
				y.committed()
				time.Sleep(time.Second)
			}
			if !errors.Is(y.failed(), eio) || flushes != 1 {
				t.Errorf("got %v after %d flushes, want the error after one", y.failed(), flushes)
			}
			if err := y.close(); !fault.Is(err, fault.Unavailable) {
				t.Errorf("close: got %v, want unavailable", err)
			}
		})
	})
	t.Run("CheckpointsComeByTheNumberOfCommits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var checkpoints atomic.Int64
			y := newSyncer(none, nothing, short, func() error { checkpoints.Add(1); return errors.New("not now") }, func() {}, silent)
			y.start()
			for range 3*checkpointAfter + 1 {
				y.committed()
				synctest.Wait()
			}
			if got := checkpoints.Load(); got != 3 {
				t.Errorf("got %d, want 3", got)
			}
			if err := y.close(); err != nil {
				t.Error(err)
			}
		})
	})
}

func openInternal(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "sandpit.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	t.Run("AfterARefusedFlushNoUpdateIsTaken", func(t *testing.T) {
		s := openInternal(t)
		err := errors.New("input/output error")
		s.syncer.err.Store(&err)
		got := s.Update(t.Context(), func(store.Tx) error { return nil })
		if !fault.Is(got, fault.Unavailable) || fault.As(got).Remedy == "" {
			t.Errorf("got %v, want unavailable with a remedy", got)
		}
		if err := s.View(t.Context(), func(store.Tx) error { return nil }); err != nil {
			t.Errorf("View: %v", err)
		}
	})
	t.Run("AWriterThatWasLostIsOpenedAgain", func(t *testing.T) {
		s := openInternal(t)
		insert := func(id string) error {
			return s.Update(t.Context(), func(tx store.Tx) error {
				return tx.Sandboxes().Insert(&sandbox.Sandbox{ID: sandbox.ID(id), Project: "default"})
			})
		}
		if err := insert("a"); err != nil {
			t.Fatal(err)
		}
		s.writer.close()
		if err := insert("b"); err == nil {
			t.Error("a lost connection wrote")
		}
		if err := insert("c"); err != nil {
			t.Error(err)
		}
	})
	t.Run("ALogThatGrewHugeBeginsAnew", func(t *testing.T) {
		s := openInternal(t)
		c, err := s.dialect.openConn(t.Context(), s.toWrite) // one more, to look at the log
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		write := func(bytes int) {
			t.Helper()
			e := &sandbox.Event{Sandbox: "a", Project: "default", Type: sandbox.EventExec, Detail: strings.Repeat("x", bytes)}
			if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Events().Append(e) }); err != nil {
				t.Fatal(err)
			}
		}
		logPages := func() (pages int64) {
			t.Helper()
			if err := c.row("PRAGMA wal_checkpoint(NOOP)", nil, new(int64), &pages, new(int64)); err != nil {
				t.Fatal(err)
			}
			return pages
		}
		write(1 << 20)
		if got := logPages(); got < 256 {
			t.Fatalf("a log of a megabyte has %d pages", got)
		}
		if err := s.walCheckpoint(c, 256)(); err != nil {
			t.Fatal(err)
		}
		write(1)
		if got := logPages(); got > 20 {
			t.Errorf("got %d pages after the checkpoint, want the few of one commit", got)
		}
	})
	t.Run("MoreShapesOfQueriesThanAreKeptWork", func(t *testing.T) {
		s := openInternal(t)
		for n := range maxPrepared + 20 {
			labels := map[string]string{}
			for i := range n {
				labels[strings.Repeat("x", i+1)] = "y"
			}
			if err := s.View(t.Context(), func(tx store.Tx) error {
				_, _, err := tx.Sandboxes().List(store.SandboxQuery{Metadata: labels})
				return err
			}); err != nil {
				t.Fatalf("%d labels: %v", n, err)
			}
		}
		for _, c := range s.idle {
			if len(c.stmts) > maxPrepared {
				t.Errorf("%d statements are kept", len(c.stmts))
			}
		}
	})
}

// disks are disks that note the calls they get.
type disks struct {
	did     []string
	at      time.Time
	err     error
	pending bool
}

func (d *disks) Pending() bool { return d.pending }

func (d *disks) Persist() error {
	d.did = append(d.did, "persist")
	return d.err
}

func (d *disks) MarkRecorded(at time.Time) error {
	d.did, d.at = append(d.did, "mark"), at
	return nil
}
