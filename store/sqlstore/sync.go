// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

const (
	// syncEvery is how long a commit waits for the disk; together with the flush itself, a
	// millisecond or a few, that keeps the promise of 100 ms.
	syncEvery = 60 * time.Millisecond
	// syncDisksEvery is how long it waits where disks have to be written before it, which takes longer
	// and holds up those that are made meanwhile. That keeps the promise of one second.
	syncDisksEvery = 200 * time.Millisecond
	// The disk's room is looked at from lookEvery to lookAtLeast while nothing is committed: the
	// more there is, the longer takes what would fill it, at fillRate bytes a second.
	lookEvery   = time.Second
	lookAtLeast = 10 * time.Second
	fillRate    = 1 << 30
	// checkpointAfter commits, the log is moved into the file: about 8 MB.
	checkpointAfter = 500
	// hugeLog, in pages (64 MB), is when writing has to wait for that.
	hugeLog = 16384
)

// Disks are what records are about and are on the disk no later than these.
type Disks interface {
	// Pending reports whether Persist has something to write.
	Pending() bool
	// Persist brings what was made so far to the disk. Its error is logged, and the records
	// are flushed all the same.
	Persist() error
	// MarkRecorded reports that the record of everything made before at is on the disk.
	MarkRecorded(at time.Time) error
}

// Follow has each flush of records from now on follow one of the disks.
func (s *Store) Follow(d Disks) { s.syncer.disks.Store(&d) }

// syncer makes commits durable, and moves the write-ahead log into the file.
//
// SQLite could do both by itself, at a commit: it would then make one caller in
// a thousand wait for the disk, in the middle of a create.
//
// The store owns it. Its two goroutines begin in start and end in close.
type syncer struct {
	flush      func() error // the log to the disk
	look       func() int64 // at the disk's room, now and then and with each flush; it returns that
	long       func() bool  // whether the log's file is so long that a checkpoint is due
	checkpoint func() error // the log into the file
	release    func()       // what the two of them use, at the end
	logger     *slog.Logger

	disks atomic.Pointer[Disks] // nil until Follow

	dirty chan struct{} // holds one token while commits wait for a flush
	full  chan struct{} // holds one token while a checkpoint is due
	since atomic.Int64  // commits since the last checkpoint
	err   atomic.Pointer[error]

	behind atomic.Bool // the disks could not be persisted the last time

	quit chan struct{}
	wg   sync.WaitGroup
}

func newSyncer(flush func() error, look func() int64, long func() bool, checkpoint func() error, release func(), logger *slog.Logger) *syncer {
	return &syncer{
		flush: flush, look: look, long: long, checkpoint: checkpoint, release: release, logger: logger,
		dirty: make(chan struct{}, 1), full: make(chan struct{}, 1), quit: make(chan struct{}),
	}
}

func (y *syncer) start() {
	y.wg.Go(y.flushing)
	y.wg.Go(y.checkpointing)
}

// committed notes a commit. It never waits.
func (y *syncer) committed() {
	select {
	case y.dirty <- struct{}{}:
	default:
	}
	if y.since.Add(1) >= checkpointAfter {
		y.checkpointSoon()
	}
}

func (y *syncer) checkpointSoon() {
	select {
	case y.full <- struct{}{}:
	default:
	}
}

// failed is the error of the first flush that did not work. It stays: the
// kernel reports such a loss once and forgets it.
func (y *syncer) failed() error {
	if p := y.err.Load(); p != nil {
		return *p
	}
	return nil
}

// close flushes what is left and ends the goroutines.
func (y *syncer) close() error {
	close(y.quit)
	y.wg.Wait()
	select {
	case <-y.dirty:
		y.sync()
	default:
	}
	y.release()
	if err := y.failed(); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the disk refused to keep the records")
	}
	return nil
}

func (y *syncer) flushing() {
	idle := time.NewTimer(lookEvery)
	defer idle.Stop()
	for {
		select {
		case <-y.dirty:
		case <-idle.C:
			idle.Reset(untilLook(y.look()))
			continue
		case <-y.quit:
			return
		}
		// Wait first: all commits of this time share one flush. The token is
		// taken before the flush, so a commit during it asks for another.
		ended := y.wait(syncEvery)
		if d := y.disks.Load(); !ended && d != nil && (*d).Pending() {
			ended = y.wait(syncDisksEvery - syncEvery)
		}
		idle.Reset(untilLook(y.sync()))
		if ended {
			return
		}
	}
}

// wait waits that long, or until the syncer is closed, and reports whether it was.
func (y *syncer) wait(d time.Duration) (closed bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-y.quit:
		return true
	}
}

// untilLook returns when the disk is looked at again that has so much room.
func untilLook(room int64) time.Duration {
	return min(max(lookEvery, time.Duration(room/fillRate)*time.Second), lookAtLeast)
}

// sync makes what was committed durable, and returns the room that it saw.
func (y *syncer) sync() (room int64) {
	if y.failed() != nil {
		return 0
	}
	y.persist()
	at := time.Now()
	if err := y.flush(); err != nil {
		y.err.Store(&err)
		y.logger.Error("the disk refused to keep the records; no more are taken", "err", err)
	} else if d := y.disks.Load(); d != nil {
		if err := (*d).MarkRecorded(at); err != nil {
			y.logger.Debug("that the records are on the disk cannot be noted", "err", err)
		}
	}
	room = y.look()
	if y.long() { // few commits, of many pages each
		y.checkpointSoon()
	}
	return room
}

// persist brings the disks that records are about to the disk.
func (y *syncer) persist() {
	d := y.disks.Load()
	if d == nil {
		return
	}
	err := (*d).Persist()
	if failing := err != nil; y.behind.Swap(failing) != failing && failing {
		y.logger.Error("the records are flushed without the disks of new sandboxes; a crash of the host may take those", "err", err)
	}
}

func (y *syncer) checkpointing() {
	for {
		select {
		case <-y.full:
		case <-y.quit:
			return
		}
		y.since.Store(0)
		y.persist() // it flushes the log first
		if err := y.checkpoint(); err != nil {
			// The records are safe in the log, which grows; the next one retries.
			y.logger.Warn("moving the log into the data base failed", "err", err)
		}
	}
}

// fileFlush returns a function that makes the data of an open file durable.
func fileFlush(f *os.File) func() error {
	return func() error {
		for {
			if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
				return err
			}
		}
	}
}
