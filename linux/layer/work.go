// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"crypto/rand"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// stalePrefix begins the names of work directories that are being deleted.
const stalePrefix = "stale."

// mountRoom is what a full layer gets beside its limit, for a new work directory and
// what a mount makes in it: the kernel sets some 256 KiB aside for each change.
const mountRoom = 4 << 20

// makeRoom lets a layer that is full hold a little more than its limit.
func (s *Store) makeRoom(fd int) error {
	if s.limitErr != nil || !isSubvolume(fd) {
		return nil
	}
	if err := s.lend(); err != nil {
		return err
	}
	volume, err := subvolumeID(fd)
	if err != nil {
		return err
	}
	used, limit, err := readGroup(s.fsid, volume)
	if err != nil || limit == 0 || limit-used >= mountRoom {
		return err
	}
	return setLimit(s.top, volume, used+mountRoom)
}

// freshWork gives the layer at fd an empty work directory. The old one has an
// entry for each file of the image that the sandbox changed, so it is only put aside
// here, inside its subvolume, which it cannot leave, and deleted afterwards.
func (t *trash) freshWork(fd int) error {
	entries, err := names(fd)
	if err != nil {
		return err
	}
	stale, work := false, false
	for _, name := range entries {
		stale = stale || strings.HasPrefix(name, stalePrefix)
		work = work || name == "work"
	}
	if work {
		// A mount always leaves something: an empty directory never saw one.
		empty, err := isEmpty(fd, "work")
		if err == nil && empty {
			work = false
		} else {
			err = unix.Renameat2(fd, "work", fd, fmt.Sprintf("%s%x", stalePrefix, t.next()), unix.RENAME_NOREPLACE)
		}
		if err == unix.ENOSPC {
			// Of the whole store. Deleting still works.
			err = removeTree(fd, "work")
		}
		if err != nil {
			return err
		}
		stale = stale || work
		work = empty
	}
	if !work {
		if err := unix.Mkdirat(fd, "work", 0o700); err != nil {
			return err
		}
	}
	if stale {
		t.clean(fd)
	}
	return nil
}

// clean deletes, in the background, the work directories of the layer at fd that
// were put aside. The layer may be in use, or go away, meanwhile.
func (t *trash) clean(fd int) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return // the next fresh work directory tries again
	}
	remove := func() {
		defer unix.Close(own)
		entries, _ := names(own)
		for _, name := range entries {
			if strings.HasPrefix(name, stalePrefix) {
				if err := removeTree(own, name); err != nil {
					t.log.Debug("an old work directory stays until the next start", "error", err)
				}
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		t.mu.Unlock()
		remove()
		t.mu.Lock()
		return
	}
	t.cleaning.Go(remove)
}

// renameOverlay gives the layer at fd a new overlay's id. The one that is there is of the
// overlay that was mounted last, perhaps on what this is a copy of, and two with the same could
// not be told apart by what watches their files. A store that is full, or cannot keep an id,
// leaves the old one: who watches finds out then.
func renameOverlay(fd int) error {
	upper, err := openDir(fd, "upper")
	if err != nil {
		return err
	}
	defer unix.Close(upper)
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	switch err := unix.Fsetxattr(upper, "trusted.overlay.uuid", id, 0); err {
	case unix.ENOSPC, unix.EDQUOT, unix.EOPNOTSUPP:
		return nil
	default:
		return err
	}
}
