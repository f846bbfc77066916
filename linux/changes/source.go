// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// maxTrackers bounds the windows that are open at once on one sandbox: each
// event costs each of them.
const maxTrackers = 64

// Source is one sandbox's overlay. It is safe for concurrent use.
//
// It holds one file descriptor, which keeps the overlay's superblock alive:
// close the source before the upper directory is mounted anew.
type Source struct {
	g     *Group
	root  *os.File
	lower []string
	dev   uint64
	id    fsid

	mark mark
	turn turn // of its watches

	// guarded by g.mu
	backlog backlog
	unread  bool // in g.unread
	booking bool // by a goroutine of the reader's

	// mu may be held for as long as the sandbox's own file system takes. No other
	// sandbox's calls take it, nor does the reader.
	mu        sync.Mutex
	closed    bool
	shared    bool // the root is somebody else's to close
	trackers  []*Tracker
	watches   []*Watch
	ignored   ignored
	idleSince time.Time
}

// Add makes the overlay known whose root mount is: a detached mount, an O_PATH
// file of it, or any directory opened as the root of the overlay, also through
// another mount namespace (/proc/PID/root). The caller keeps and closes mount.
//
// Lower are the host's paths of its lower directories. They are opened only to
// name what was in a directory of theirs that is gone: there the kernel tells
// the directory but not its place. Without them such an answer is not Complete.
// The overlay must not have redirect_dir=on, or those names are the lower's.
//
// It fails with [fault.Unsupported] where events cannot be told apart or their
// files not be found again: the mount is no overlay with index=on,nfs_export=on,
// or the kernel gives all overlays one file system id. It fails with
// [fault.Exists] where this overlay is already there, and with [fault.Conflict]
// where another one has the same file system id, as a copied upper directory has.
func (g *Group) Add(mount *os.File, lower []string) (*Source, error) {
	conn, err := mount.SyscallConn()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the mount is closed")
	}
	fd := -1
	if cerr := conn.Control(func(m uintptr) {
		// Opened anew: a mount made by fsmount is an O_PATH file, which neither
		// fanotify_mark nor open_by_handle_at takes.
		fd, err = unix.Openat(int(m), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}); cerr != nil {
		err = cerr
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot open the root of the overlay")
	}
	s := &Source{g: g, root: os.NewFile(uintptr(fd), "overlay"), lower: slices.Clone(lower), turn: newTurn()}
	if err := s.identify(fd); err != nil {
		s.root.Close()
		return nil, err
	}
	if err := g.enter(s); err != nil {
		s.root.Close()
		return nil, err
	}
	return s, nil
}

// identify learns what tells this overlay from others, and tries what a window will need.
func (s *Source) identify(fd int) error {
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err := errors.Join(unix.Fstatfs(fd, &fs), unix.Fstat(fd, &st)); err != nil {
		return fault.Wrap(fault.Internal, err, "cannot look at the root of the overlay")
	}
	if fs.Type != unix.OVERLAYFS_SUPER_MAGIC {
		return fault.New(fault.Unsupported, "changed files can only be told of an overlay, and this is a file system of type %#x", fs.Type)
	}
	s.id, s.dev = *(*fsid)(unsafe.Pointer(&fs.Fsid)), st.Dev
	if s.id == (fsid{}) {
		return fault.New(fault.Unsupported, "changed files cannot be told: the overlay has no file system id").
			WithRemedy("use Linux 6.6 or later and mount it with uuid=on")
	}
	var h handle
	err := h.read(fd, "")
	if err == nil {
		key := string(h.bytes())
		var again int
		if again, err = h.open(fd, key, unix.O_PATH|unix.O_DIRECTORY); err == nil {
			unix.Close(again)
		}
	}
	if err != nil {
		return fault.Wrap(fault.Unsupported, err, "changed files cannot be told: the overlay gives no file handles").
			WithRemedy("mount it with index=on,nfs_export=on")
	}
	return nil
}

func (g *Group) enter(s *Source) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := g.register(s); err != nil {
		return err
	}
	// Tried once, so that a host that cannot do it says so here and not at a command.
	_, err := s.addMark(time.Now())
	s.removeMark()
	if err != nil {
		s.dropLocked()
	}
	return err
}

func (g *Group) register(s *Source) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fault.New(fault.State, "the group is closed")
	}
	if other := g.sources[s.id]; other != nil {
		if other.dev == s.dev {
			return fault.New(fault.Exists, "this overlay is already tracked")
		}
		return fault.New(fault.Conflict, "two live overlays have the file system id %x, so that their changes cannot be told apart", s.id).
			WithRemedy("remove the xattr trusted.overlay.uuid from a copied upper directory before mounting it, on Linux 6.6 or later")
	}
	g.sources[s.id] = s
	return nil
}

// Close forgets the overlay. Windows that are open on it end, and their Stop
// answers with what it knows, not Complete. Twice is fine.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked()
	return nil
}

func (s *Source) dropLocked() {
	if s.closed {
		return
	}
	s.closed = true
	for _, t := range s.trackers {
		t.window.lost.because(errors.New("the overlay is no longer tracked"))
	}
	for _, w := range s.watches {
		w.endLocked(errDown())
	}
	g := s.g
	s.closeBacklog()
	s.removeMark()
	s.forgetIgnored() // its marks go with its files
	g.mu.Lock()
	g.watches -= len(s.watches)
	delete(g.sources, s.id)
	g.mu.Unlock()
	s.trackers, s.watches = nil, nil
	if !s.shared {
		s.root.Close()
	}
}

// Root hands out the source's descriptor of the overlay's root, so that one does for
// who needs it too. From then on it is the caller's, who closes it after the source.
func (s *Source) Root() *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared = true
	return s.root
}

// busyLocked reports whether anybody needs the sandbox's events.
func (s *Source) busyLocked() bool { return len(s.trackers)+len(s.watches) > 0 }

// restLocked stops watching the overlay where no window and no watch needs it any more: after a
// while, since the next command comes soon.
func (s *Source) restLocked() {
	if s.busyLocked() {
		return
	}
	s.closeBacklog()
	s.idleSince = time.Now()
	if s.g.runs() {
		s.g.wakeExpiry()
		return
	}
	s.removeMark()
}

// beginLocked prepares for a window or a watch that begins with the current time of files,
// which it returns. It fails with errPaused where one can begin, but misses changes.
func (s *Source) beginLocked() (at unix.Timespec, err error) {
	// Events from before belong to what is open, not to this one.
	s.bookLocked()
	paused := s.listenLocked(time.Now())
	if paused != nil && !errors.Is(paused, errPaused) {
		return at, paused
	}
	if err := s.stopIgnoringLocked(); err != nil {
		return at, fault.Wrap(fault.Internal, err, "writes to files cannot be told")
	}
	// The clock that file times are taken from, not the finer one.
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &at); err != nil {
		return at, fault.Wrap(fault.Internal, err, "cannot read the clock")
	}
	return at, paused
}

// Track begins a window on the directory dir, an absolute path inside the
// sandbox, taken literally: where one of its components is a symbolic link,
// nothing is below it. What was finished before the call is not in the window.
func (s *Source) Track(dir string) (*Tracker, error) {
	if !strings.HasPrefix(dir, "/") || strings.ContainsRune(dir, 0) || len(dir) >= unix.PathMax {
		return nil, fault.InvalidField("dir", "%.200q is not an absolute path below %d bytes", dir, unix.PathMax)
	}
	t := &Tracker{s: s, dir: strings.TrimPrefix(path.Clean(dir), "/")}
	t.window.limit = s.g.memory
	t.window.evict = t.evict
	if !s.g.catchUp() {
		t.window.lost.because(errBehind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fault.New(fault.State, "the overlay is no longer tracked")
	}
	if len(s.trackers) >= maxTrackers {
		return nil, fault.New(fault.Exhausted, "%d windows are open on this sandbox, which is the bound", maxTrackers)
	}
	begin, err := s.beginLocked()
	switch {
	case errors.Is(err, errPaused):
		t.window.lost.because(err)
	case err != nil:
		s.restLocked()
		return nil, err
	}
	t.window.begin = begin
	s.trackers = append(s.trackers, t)
	return t, nil
}
