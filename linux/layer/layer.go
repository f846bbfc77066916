// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// minDiskBytes is the least limit of a layer: below it, btrfs cannot even set
// aside what a few changes of metadata may need.
const minDiskBytes = 1 << 20

// A Layer is an open layer. It is one file descriptor; the caller closes it.
type Layer struct {
	id    string
	fd    int
	store *Store
	fresh atomic.Bool // the work directory was never given away
	roomy atomic.Bool // it holds nothing that it wrote itself

	closed atomic.Bool
}

// ID returns the layer's id.
func (l *Layer) ID() string { return l.id }

// Fd returns a descriptor of the layer's directory, which has `upper` and `work`
// in it. It is the Layer's own: good until Close, and not to be closed by the
// caller. open_tree with OPEN_TREE_CLONE and AT_EMPTY_PATH takes it.
func (l *Layer) Fd() int { return l.fd }

// Close closes the descriptor, not what was cloned from it. A second Close
// does nothing.
func (l *Layer) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return unix.Close(l.fd)
}

// FreshWork makes `work` empty and new, as an overlay mount needs it each
// time: what an earlier mount left there belongs to that mount, and so does its id in
// `upper`, which is exchanged for another. The layer must not be mounted. It takes no longer
// where there was much in it: that is deleted in the background. On the Layer that Create
// gave it costs nothing the first time.
//
// A mount needs room of its own. A layer that has less than 4 MiB left of its limit
// may hold 4 MiB more than it does, until Resize says again what it may: after the mount.
func (l *Layer) FreshWork() error {
	if l.fresh.Swap(false) {
		return nil
	}
	if !l.roomy.Swap(false) {
		if err := l.store.makeRoom(l.fd); err != nil {
			return l.store.blame(failed(err, "layer %s gets no room for a mount", l.id))
		}
	}
	if err := l.store.trash.freshWork(l.fd); err != nil {
		return l.store.blame(failed(err, "the work directory of layer %s cannot be made anew", l.id))
	}
	if err := renameOverlay(l.fd); err != nil {
		return failed(err, "the layer %s cannot be told apart from its copies", l.id)
	}
	return nil
}

// Create makes a layer and its log directory, all or nothing. diskBytes is the
// most that the layer may hold, in bytes, data and metadata, and at least
// 1 MiB; 0 is no limit. A write over it fails with EDQUOT. Where Info's
// DiskLimit is not nil, the limit is not enforced and not an error. Nothing is
// synced to the disk. Errors: Invalid, Exists, Exhausted.
func (s *Store) Create(id string, diskBytes int64) (*Layer, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if err := checkLimit(diskBytes); err != nil {
		return nil, err
	}
	leave, err := s.enterNew()
	if err != nil {
		return nil, err
	}
	defer leave()
	if s.limitErr != nil {
		diskBytes = 0
	}
	reused := false
	if s.kind == Plain {
		err = unix.Mkdirat(s.layers, id, 0o755)
	} else if reused, err = s.trash.spares.take(s.layers, id); !reused && err == nil {
		err = createSubvolume(s.layers, id, s.quota(diskBytes))
	}
	if err == unix.EEXIST {
		return nil, fault.New(fault.Exists, "the layer %s exists", id)
	}
	if err != nil {
		return nil, s.blame(failed(err, "the layer %s cannot be made", id))
	}
	fd, err := s.furnish(id, reused && s.limitErr == nil, diskBytes)
	if err != nil {
		s.undo(id)
		return nil, s.blame(failed(err, "the layer %s cannot be made", id))
	}
	s.persistence.made.Add(1)
	l := &Layer{id: id, fd: fd, store: s}
	l.fresh.Store(true)
	return l, nil
}

// furnish makes what belongs in and beside a new layer. `upper` comes last of
// the layer's own: one without it was never finished, and Open throws it away.
// A subvolume that was another layer's has that one's limit, until relimit.
func (s *Store) furnish(id string, relimit bool, limit int64) (fd int, err error) {
	if fd, err = openDir(s.layers, id); err != nil {
		return -1, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
			fd = -1
		}
	}()
	if relimit {
		var volume uint64
		if volume, err = subvolumeID(fd); err == nil {
			err = setLimit(s.top, volume, limit)
		}
		if err != nil {
			return fd, err
		}
	}
	if err = s.makeLogs(id); err != nil {
		return fd, err
	}
	return fd, makeTrees(fd)
}

// makeLogs makes the log directory of a new layer.
func (s *Store) makeLogs(id string) error {
	err := unix.Mkdirat(s.logs, id, 0o700)
	if err == unix.EEXIST {
		// Of a layer that is being removed at this moment.
		if err = s.trash.put(s.logs, id); err == nil {
			err = unix.Mkdirat(s.logs, id, 0o700)
		}
	}
	return err
}

// makeTrees makes the directories of an empty layer, `upper` last.
func makeTrees(fd int) error {
	if err := unix.Mkdirat(fd, "work", 0o700); err != nil {
		return err
	}
	if err := unix.Mkdirat(fd, "upper", 0o755); err != nil {
		return err
	}
	// The server's umask must not close the sandbox's root to its users.
	return unix.Fchmodat(fd, "upper", 0o755, 0)
}

// undo throws away a layer that could not be finished.
func (s *Store) undo(id string) {
	if err := s.discard(id); err != nil {
		s.log.Error("a half-made layer is left behind", "id", id, "error", err)
	}
}

// Open opens a layer that exists. Errors: Invalid, NotFound.
func (s *Store) Open(id string) (*Layer, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	fd, err := s.open(id)
	if err != nil {
		return nil, err
	}
	return &Layer{id: id, fd: fd, store: s}, nil
}

func (s *Store) open(id string) (int, error) {
	fd, err := openDir(s.layers, id)
	if err == unix.ENOENT {
		return -1, fault.New(fault.NotFound, "there is no layer %s", id)
	}
	if err != nil {
		return -1, failed(err, "the layer %s cannot be opened", id)
	}
	return fd, nil
}

// Logs opens the log directory of a layer, owned by root with mode 0700 and
// made again where it is missing. It is outside the layer, in the same mount;
// the caller closes it. What is in it was written by the sandbox's agent: read
// it with confinement (os.OpenRoot on /proc/self/fd/N). Errors: Invalid, NotFound.
func (s *Store) Logs(id string) (*os.File, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := s.has(id); err != nil {
		return nil, err
	}
	fd, err := ensureDir(s.logs, id)
	if err != nil {
		if gone := s.has(id); gone != nil {
			return nil, gone
		}
		return nil, failed(err, "the log directory of layer %s cannot be opened", id)
	}
	dir := os.NewFile(uintptr(fd), fmt.Sprintf("logs/%s", id))
	if err := s.has(id); err != nil { // a removal since then may have passed the directory before it was made again
		_ = dir.Close()
		if err := s.trash.put(s.logs, id); err != nil && err != unix.ENOENT {
			s.log.Error("the log directory of a layer that was removed is left behind", "id", id, "error", err)
		}
		return nil, err
	}
	return dir, nil
}

// has returns nil if a layer exists.
func (s *Store) has(id string) error {
	if err := unix.Faccessat(s.layers, id, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fault.Wrap(fault.NotFound, err, "there is no layer %s", id)
	}
	return nil
}

// Remove takes a layer and its logs away, at once and whatever their size; the
// space comes back later. A layer that does not exist is not an error. Error:
// Invalid.
func (s *Store) Remove(id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := s.discard(id); err != nil {
		return failed(err, "the layer %s cannot be removed", id)
	}
	return nil
}

// discard throws the layer away before its logs: logs without a layer are
// thrown away by the next Open, a layer without logs would stay.
func (s *Store) discard(id string) error {
	defer s.trash.kick()
	if err := s.trash.put(s.layers, id); err != nil && err != unix.ENOENT {
		return err
	}
	if err := s.trash.put(s.logs, id); err != nil && err != unix.ENOENT {
		return err
	}
	return nil
}

// List returns the ids of all layers, in no order.
func (s *Store) List() ([]string, error) {
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	all, err := names(s.layers)
	if err != nil {
		return nil, failed(err, "the layers cannot be listed")
	}
	return onlyIDs(all), nil
}

// onlyIDs leaves out what cannot be ours, as "lost+found". It reuses all.
func onlyIDs(all []string) []string {
	return slices.DeleteFunc(all, func(id string) bool { return checkID(id) != nil })
}

func checkLimit(bytes int64) error {
	if bytes != 0 && bytes < minDiskBytes {
		return fault.InvalidField("disk_bytes", "%d is under the least limit, %d; 0 is no limit", bytes, minDiskBytes)
	}
	return nil
}
