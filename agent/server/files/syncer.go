// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// syncAfter is how long an upload waits for others that are brought to the disk with it.
	// With the time of that it is on the disk within a second.
	syncAfter = 250 * time.Millisecond
	// syncFiles is how many wait as files, of each file system; of more, the file system is
	// written as a whole.
	syncFiles = 32
	// syncDevices is of how many file systems there may be files that wait: more than a
	// sandbox mounts.
	syncDevices = 16
)

// syncer brings files to the disk behind the answers to their uploads. It has one goroutine,
// of its owner's, while files wait.
type syncer struct {
	o *Options

	mu      sync.Mutex
	waiting map[uint64]*unsynced // by file system; nil: there is no goroutine
}

// unsynced are the files of one file system that wait.
type unsynced struct {
	files []int // descriptors for reading
	whole bool  // there were more: the first is there for the file system
}

// add takes the descriptor of a file that was written.
func (y *syncer) add(fd int) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink == 0 {
		_ = unix.Close(fd)
		return
	}
	y.put(st.Dev, fd, false)
}

// addAll takes the descriptor of a directory on whose file system many files were written.
func (y *syncer) addAll(dev uint64, fd int) { y.put(dev, fd, true) }

func (y *syncer) put(dev uint64, fd int, whole bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.waiting == nil {
		y.waiting = make(map[uint64]*unsynced)
		y.o.Go(y.run)
	}
	u := y.waiting[dev]
	switch {
	case u == nil && len(y.waiting) == syncDevices:
		_ = unix.Close(fd)
		return
	case u == nil:
		u = &unsynced{}
		y.waiting[dev] = u
	}
	u.whole = u.whole || whole
	switch {
	case len(u.files) < syncFiles:
		u.files = append(u.files, fd)
	default:
		u.whole = true
		_ = unix.Close(fd)
	}
}

// run brings what waits to the disk until nothing does, or Done is closed.
func (y *syncer) run() {
	for {
		timer := time.NewTimer(syncAfter)
		select {
		case <-timer.C:
		case <-y.o.Done:
			timer.Stop()
		}
		y.mu.Lock()
		waiting := y.waiting
		if len(waiting) == 0 {
			y.waiting = nil
			y.mu.Unlock()
			return
		}
		y.waiting = make(map[uint64]*unsynced)
		y.mu.Unlock()
		y.sync(waiting)
	}
}

// now brings what waits to the disk before it returns.
func (y *syncer) now() {
	y.mu.Lock()
	waiting := y.waiting
	if waiting != nil {
		y.waiting = make(map[uint64]*unsynced)
	}
	y.mu.Unlock()
	y.sync(waiting)
}

func (y *syncer) sync(waiting map[uint64]*unsynced) {
	for _, u := range waiting {
		if err := u.sync(); err != nil {
			y.o.Logger.Error("uploads are not on the disk yet", "error", err)
		}
	}
}

// sync brings the files to the disk, and closes them.
func (u *unsynced) sync() (err error) {
	if u.whole {
		err = unix.Syncfs(u.files[0])
	} else {
		for _, fd := range u.files { // all of them are written at once
			_ = unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE)
		}
	}
	for _, fd := range u.files {
		var st unix.Stat_t
		if !u.whole && unix.Fstat(fd, &st) == nil && st.Nlink > 0 {
			if e := unix.Fsync(fd); e != nil && err == nil {
				err = e
			}
		}
		_ = unix.Close(fd)
	}
	return err
}
