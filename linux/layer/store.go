// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Kind says what a store is made of.
type Kind string

const (
	// Btrfs: directories in a data directory that is btrfs already.
	Btrfs Kind = "btrfs"
	// Loop: btrfs in a file that the store made in the data directory.
	Loop Kind = "loop"
	// Plain: directories in a file system that can neither limit nor snapshot.
	Plain Kind = "plain"
)

// Options of Open.
type Options struct {
	// Dir is the part of the data directory that is the store's alone. It is
	// made if it is missing, not its parents. Required.
	Dir string
	// Kind forces a kind; "" takes the best that works. A store that has
	// layers keeps its kind: another one would hide them, and is refused.
	Kind Kind
	// SizeBytes is the size of a new loop file, at least 2 GiB; 0 is half of
	// the free space, at most 1 TiB. It has no effect on a store that exists.
	SizeBytes int64
	// Attach is told of the mount of a loop store on a kernel that clones no detached
	// mounts (before Linux 6.15): it is to attach it in a mount namespace of the caller's,
	// in which the caller makes clones, and to keep it there until the store is closed. nil: such
	// a kernel has no loop stores.
	Attach func(mount int) error
	// Detach undoes Attach, before the mount is made anew.
	Detach func() error
	// Evict ends all processes that use the store, when its file system is found read-only after
	// an error, and in use: it is mounted anew afterwards. nil: it then cannot be opened.
	Evict func(ctx context.Context) error
	// Identity says whose store it has to be.
	Identity Identity
	// Logger gets what goes wrong behind a caller's back; nil drops it.
	Logger *slog.Logger
}

// A Store holds layers. Its methods may be called concurrently; calls for one
// id that overlap are safe, and one of them wins.
type Store struct {
	dir        string
	opts       Options
	kind       Kind
	declined   []Declined
	limitErr   error  // why disk limits are not enforced; nil: they are
	fsid       string // of a store that is btrfs
	loop       *loopStore
	identified bool
	group      uint64 // of the quotas of all disks together; 0: there is none
	backed     int64  // bytes of metadata that the host's disk has room for
	log        *slog.Logger

	top, layers, logs, volumes int // directories
	flush                      int // see flushSubvolume; -1 in a plain store
	snapshots                  *slots
	staging                    *slots // where copies are made, each under its final name
	trash                      *trash
	copies                     copies
	persistence                persistence
	uncommitted                atomic.Bool // something was made since the last CommitCopies that this is for
	committing                 background
	ending                     chan struct{} // closed by Close

	space    atomic.Pointer[Space] // what was seen last
	looking  sync.Mutex            // held by look
	troubled string                // what it logged last
	lent     atomic.Bool           // since the watch's last look, see lend
	failing  chan struct{}
	watching sync.WaitGroup

	mu      sync.RWMutex // held for reading by every call, for writing by Close and Remount
	closed  bool
	syncing sync.WaitGroup
}

// Open opens the store in opts.Dir, or makes it. A data directory has one
// server at a time, which the caller sees to by its own lock: Open throws away
// the halves of layers that a killed server was making or removing. Sandboxes
// that outlived such a server go on undisturbed, and share the mount.
//
// A new store takes the best kind that works here; an existing one is opened
// as what it is, or not at all. Errors: Invalid for bad options, State where
// the kind asked for is not the store's, Unsupported where this host cannot do
// what the kind needs, Exhausted where the disk is too small, Unavailable where
// the store cannot be mounted now.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.SizeBytes != 0 && opts.SizeBytes < minLoopSize {
		return nil, fault.InvalidField("size_bytes", "%d is under the least size of a store, %d", opts.SizeBytes, int64(minLoopSize))
	}
	abs, err := filepath.Abs(opts.Dir)
	if opts.Dir == "" || err != nil {
		return nil, fault.InvalidField("dir", "%q is not a directory", opts.Dir)
	}
	opts.Dir = abs
	if err := os.Mkdir(opts.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "the store's directory cannot be made (%s)", err)
	}
	fd, err := unix.Open(opts.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the store's directory %s cannot be opened (%s)", opts.Dir, err)
	}
	dir := os.NewFile(uintptr(fd), opts.Dir)
	// The lock goes with the descriptor. It is on the directory and not on the
	// loop file, as that file has another identity before it is made.
	defer dir.Close()
	if err := lock(ctx, fd); err != nil {
		return nil, err
	}
	s := &Store{dir: opts.Dir, opts: opts, log: opts.Logger, failing: make(chan struct{}, 1), top: -1, layers: -1, logs: -1, volumes: -1, flush: -1, ending: make(chan struct{})}
	if err := opts.Identity.findMissing(dir); err != nil {
		return nil, err
	}
	if err := s.choose(ctx, dir, opts); err != nil {
		return nil, err
	}
	if err := s.identify(dir); err != nil {
		s.closeFiles()
		return nil, err
	}
	if err = s.lay(dir); err == nil {
		err = s.readRecorded()
	}
	if err != nil {
		s.closeFiles()
		return nil, err
	}
	s.committing.do = s.commitNow
	s.trash.kick()
	s.watching.Go(s.watch)
	return s, nil
}

func lock(ctx context.Context, fd int) error {
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || err != unix.EWOULDBLOCK && err != unix.EINTR {
			return err
		}
		select {
		case <-ctx.Done():
			return fault.Wrap(fault.Unavailable, ctx.Err(), "another server is opening the store")
		case <-time.After(retryEvery):
		}
	}
}

// lay opens the directories of the store, made where missing, and clears away
// what a killed server left half done.
func (s *Store) lay(dir *os.File) (err error) {
	base := int(dir.Fd())
	if s.loop != nil {
		base = s.loop.root
	}
	if s.top, err = openDir(base, "."); err != nil {
		return err
	}
	if s.layers, err = ensureDir(s.top, "layers"); err != nil {
		return err
	}
	if s.logs, err = ensureDir(s.top, "logs"); err != nil {
		return err
	}
	if s.volumes, err = ensureDir(s.top, "volumes"); err != nil {
		return err
	}
	if s.snapshots, err = openSlots(s.top, "snapshots"); err != nil {
		return err
	}
	if s.staging, err = openSlots(s.top, "staging"); err != nil {
		return err
	}
	if s.trash, err = openTrash(s.top, s.kind != Plain, s.log); err != nil {
		return err
	}
	if s.kind != Plain {
		if s.flush, err = openFlush(s.top); err != nil {
			return err
		}
	}
	if s.kind != Plain {
		if s.fsid, err = fsid(s.top); err != nil {
			return fault.Wrap(fault.Unsupported, err, "the id of the btrfs cannot be read (%s)", err)
		}
	}
	if s.limitErr = s.quotas(); s.loop != nil && s.limitErr == nil {
		if err := s.openGroupOfAll(); err != nil {
			s.log.Warn("the disks of all sandboxes have no limit together: they can fill the store", "error", err)
		}
	}
	if err := s.sweep(); err != nil {
		return err
	}
	s.look()
	return nil
}

// quotas says why disk limits cannot be enforced, or nil.
func (s *Store) quotas() error {
	if s.kind == Plain {
		return s.needsBtrfs("disk limits need")
	}
	if err := quotasOn(s.layers); err != nil {
		if s.kind == Btrfs {
			return fault.Wrap(fault.Unsupported, err, "the data directory's btrfs keeps no quotas (%s)", err).
				WithRemedy("turn them on, they are the whole file system's: btrfs quota enable --simple %s", s.dir)
		}
		return fault.Wrap(fault.Unsupported, err, "the store was made without simple quotas (%s)", err).
			WithRemedy("use Linux 6.7 or later with an empty store: remove its sandboxes and its file %s", filepath.Join(s.dir, loopFile))
	}
	return nil
}

// needsBtrfs says why something does not work in a plain store.
func (s *Store) needsBtrfs(what string) error {
	err := fault.New(fault.Unsupported, "%s btrfs, and the store is plain directories", what)
	for _, d := range s.declined {
		if d.Kind == Loop {
			err.Message += ": " + fault.As(d.Err).Message
			err.Remedy = fault.As(d.Err).Remedy
		}
	}
	return err
}

// sweep throws away copies, layers and volumes that were never finished, disks that
// were exchanged for others, and logs whose layer is gone. A layer with an upper
// directory is data, whatever else is missing, and so is a volume with a data directory.
func (s *Store) sweep() error {
	for i := range s.staging.slot {
		if err := s.trash.putAll(s.staging.slot[i].dir); err != nil {
			return err
		}
	}
	volumes, err := names(s.volumes)
	if err != nil {
		return err
	}
	for _, id := range volumes {
		if checkID(id) == nil && unix.Faccessat(s.volumes, id+"/data", unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
			if err := s.trash.put(s.volumes, id); err != nil {
				return err
			}
		}
	}
	ids, err := names(s.layers)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if checkID(id) == nil && unix.Faccessat(s.layers, id+"/upper", unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
			s.log.Info("a half-made layer is thrown away", "id", id)
			if err := s.trash.put(s.layers, id); err != nil {
				return err
			}
		}
	}
	logs, err := names(s.logs)
	if err != nil {
		return err
	}
	for _, id := range logs {
		if unix.Faccessat(s.layers, id, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
			if err := s.trash.put(s.logs, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sync writes everything in the store to the disk. When ctx ends first, it
// returns ctx's error, and the writing goes on; Close waits for it.
func (s *Store) Sync(ctx context.Context) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	done := make(chan error, 1)
	s.syncing.Go(func() { done <- unix.Syncfs(s.top) })
	select {
	case err := <-done:
		if err != nil {
			return failed(err, "the store could not be written to the disk")
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A copy of a tree that holds that much leaves much to be committed: the first writes to it have
// the kernel count hundreds of references. They count with a commit within half a minute, or
// with the next Snapshot or Fork, whose caller waits for it: 5 ms with 1,000,000 files.
const commitBytes = 16 << 20

// What can wait waits for a moment without copies, since a commit holds up all that are being
// made; a copy that is made meanwhile commits what was left before. But not for longer than
// most: an exchange that is not on the disk yet is one that a crash of the host takes back.
const (
	commitAfter = 20 * time.Millisecond
	commitMost  = 200 * time.Millisecond
)

// CommitCopies is to be called when copies were made, or contents exchanged, and their overlays mounted.
// It has what that left brought to the disk, where it is much or somebody counts on it, and
// deletes what was exchanged: a moment later, and behind the caller's back.
func (s *Store) CommitCopies() {
	leave, err := s.enter()
	if err != nil {
		return
	}
	defer leave()
	if s.uncommitted.Load() {
		s.committing.kick()
	}
}

func (s *Store) commitNow() {
	s.copies.waitIdle(commitAfter, commitMost, s.ending)
	if !s.uncommitted.Swap(false) {
		return // what was kicked for meanwhile went with the time before
	}
	if err := s.commitAll(s.layers); err != nil {
		s.uncommitted.Store(true)
		s.log.Error("the last copies and rollbacks are not on the disk yet; a crash of the host may take them back", "error", err)
	}
	s.trash.kick() // not before: its work would hold up the commit
}

// Close waits until all that was removed is deleted, and closes the store.
// Layers that are open stay usable; running sandboxes keep a loop store
// mounted. A second Close does nothing. The error says what could not be deleted;
// the store is closed all the same, and the next Open tries again.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	close(s.ending)
	s.watching.Wait()
	s.syncing.Wait()
	s.committing.wait()
	var err error
	if s.trash != nil { // else a failed store was closed already
		if s.persistence.pending() {
			if err := s.commitAll(s.layers); err != nil {
				s.log.Error("the last layers are not on the disk yet; a crash of the host may take them back", "error", err)
			}
		}
		err = s.trash.end()
	}
	s.closeFiles()
	return err
}

func (s *Store) closeFiles() {
	if s.trash != nil {
		s.trash.close()
	}
	for _, slots := range []*slots{s.snapshots, s.staging} {
		if slots != nil {
			slots.close()
		}
	}
	for _, fd := range []*int{&s.flush, &s.volumes, &s.layers, &s.logs, &s.top} {
		if *fd >= 0 {
			unix.Close(*fd)
		}
		*fd = -1
	}
	if s.loop != nil {
		s.loop.Close()
	}
	s.trash, s.snapshots, s.staging, s.loop = nil, nil, nil, nil
}

// enter keeps the store open until leave is called.
func (s *Store) enter() (leave func(), err error) {
	if seen := s.space.Load(); seen != nil && seen.Failed != nil {
		return nil, seen.Failed
	}
	s.mu.RLock()
	switch {
	case s.closed:
		err = fault.New(fault.Unavailable, "the store of layers is closed")
	case s.top < 0: // it fails just now, see Remount
		err = failedStore()
	default:
		return s.mu.RUnlock, nil
	}
	s.mu.RUnlock()
	return nil, err
}

// enterNew is enter for what makes something new, which a full disk has no room for.
func (s *Store) enterNew() (leave func(), err error) {
	if err := s.Room(); err != nil {
		return nil, err
	}
	return s.enter()
}

// failed gives the kernel's error the code that says what to do about it.
func failed(err error, format string, args ...any) error {
	if isFault(err) {
		return err // it is said where the fact was known
	}
	message := fmt.Sprintf(format, args...) + " (" + err.Error() + ")"
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.NoSpace(fault.StoreDisk, err, "%s", message).
			WithRemedy("delete sandboxes that nobody needs, or give the store a larger disk")
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		return fault.Wrap(fault.Exhausted, err, "%s", message)
	case errors.Is(err, unix.EROFS), errors.Is(err, unix.EIO):
		return fault.Wrap(fault.Unavailable, err, "%s", message).
			WithRemedy("the store's disk failed or is full; see the kernel's log")
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
