// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// trash deletes in the background what was moved into it. It is a directory:
// what a killed server left in it goes with the next one.
type trash struct {
	dir int // what is thrown away is renamed into here
	// deleting is where it is deleted. The kernel holds a directory's lock all
	// the while it destroys a subvolume in it: with one directory for both,
	// every Remove, and by the rename's two locks every Create, would wait.
	deleting  int
	subvolume bool // entries may be subvolumes
	spares    *spares
	log       *slog.Logger
	deletion  background

	mu       sync.Mutex
	serial   int64
	closed   bool // clean is to delete at once
	cleaning sync.WaitGroup
}

func openTrash(top int, subvolume bool, log *slog.Logger) (_ *trash, err error) {
	dir, err := ensureDir(top, "trash")
	if err != nil {
		return nil, err
	}
	deleting, err := ensureDir(top, "grave")
	if err != nil {
		unix.Close(dir)
		return nil, err
	}
	kept, err := openSpares(top)
	if err != nil {
		unix.Close(dir)
		unix.Close(deleting)
		return nil, err
	}
	t := &trash{dir: dir, deleting: deleting, subvolume: subvolume, spares: kept, log: log, serial: time.Now().UnixNano()}
	t.deletion.do = t.run
	return t, nil
}

// next returns a number that this and earlier servers never had before.
func (t *trash) next() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serial++
	return t.serial
}

// put moves name out of dir; deletion waits for kick. ENOENT if it is not there. A disk that
// is full may have no room for a rename: then it is deleted where it is, for which the kernel
// keeps some.
func (t *trash) put(dir int, name string) error {
	for {
		err := unix.Renameat2(dir, name, t.dir, fmt.Sprintf("%s.%x", name, t.next()), unix.RENAME_NOREPLACE)
		switch err {
		case unix.EEXIST:
			continue
		case unix.ENOSPC, unix.EDQUOT:
			return t.destroyIn(dir, name)
		}
		return err
	}
}

// putAll moves everything out of dir.
func (t *trash) putAll(dir int) error {
	entries, err := names(dir)
	if err != nil {
		return err
	}
	for _, name := range entries {
		if err := t.put(dir, name); err != nil && err != unix.ENOENT {
			return err
		}
	}
	return nil
}

// kick starts the deletion, or makes the one that runs look again.
func (t *trash) kick() { t.deletion.kick() }

func (t *trash) run() {
	if err := t.delete(); err != nil {
		t.log.Error("what was removed cannot be deleted; the next start tries again", "error", err)
	}
}

// delete deletes what is there now, and goes on after an error.
func (t *trash) delete() error {
	entries, err := names(t.dir)
	errs := []error{err}
	for _, name := range entries {
		err := unix.Renameat(t.dir, name, t.deleting, name)
		if err == unix.ENOSPC || err == unix.EDQUOT {
			err = t.destroyIn(t.dir, name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	entries, err = names(t.deleting)
	errs = append(errs, err)
	for _, name := range entries {
		if err := t.destroy(name); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// destroy deletes what is in deleting, or keeps it for the next layer.
func (t *trash) destroy(name string) error {
	if t.isSubvolume(t.deleting, name) {
		kept, err := t.spares.keep(t.deleting, name)
		if kept {
			return nil
		}
		if err != nil {
			t.log.Debug("a layer is destroyed instead of emptied", "error", err)
		}
	}
	return t.destroyIn(t.deleting, name)
}

// destroyIn deletes name in dir. It needs no room on the disk.
func (t *trash) destroyIn(dir int, name string) error {
	if t.isSubvolume(dir, name) && destroySubvolume(dir, name) == nil {
		return nil
	}
	return removeTree(dir, name)
}

func (t *trash) isSubvolume(dir int, name string) bool {
	var st unix.Stat_t
	return t.subvolume && unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Ino == subvolInode
}

// end is drain for the last time: nothing is deleted in the background afterwards.
func (t *trash) end() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return t.drain()
}

// drain waits until nothing is being deleted, and says what is left.
func (t *trash) drain() error {
	t.kick()
	t.deletion.wait()
	t.cleaning.Wait()
	left := 0
	for _, dir := range []int{t.dir, t.deleting} {
		entries, err := names(dir)
		if err != nil {
			return failed(err, "the trash cannot be listed")
		}
		left += len(entries)
	}
	if left > 0 {
		return fault.New(fault.Unavailable, "%d removed layers could not be deleted; the next start tries again", left)
	}
	return nil
}

func (t *trash) close() {
	unix.Close(t.dir)
	unix.Close(t.deleting)
	t.spares.close()
}
