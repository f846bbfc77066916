// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Watcher = (*instance)(nil)

const (
	changed = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_ATTRIB |
		unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW
	headerSize = unix.SizeofInotifyEvent
)

// Watch watches with inotify, each directory by itself: what happens in a new
// directory before it is watched is found by listing it.
func (i *instance) Watch(ctx context.Context, dir string, o runtime.WatchOptions) (runtime.Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	i.m.mu.Lock()
	up, down := i.m.up != nil, i.m.down
	i.m.mu.Unlock()
	if !up {
		return nil, errDown(i.m.id)
	}
	disk, err := filepath.EvalSymlinks(filepath.Join(i.m.dir, diskDir))
	if err != nil {
		return nil, err
	}
	dir = path.Clean("/" + dir)
	switch real, err := filepath.EvalSymlinks(disk + dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "there is no directory %q", dir)
	case err != nil:
		return nil, fault.Wrap(fault.Internal, err, "the directory %q cannot be opened", dir)
	case real != filepath.Clean(disk+dir):
		return nil, fault.InvalidField("path", "%q has a symbolic link in it, which a watch does not follow", dir)
	}
	if info, err := os.Lstat(disk + dir); err != nil || !info.IsDir() {
		return nil, fault.InvalidField("path", "%q is not a directory", dir)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fault.Wrap(fault.Exhausted, err, "the host gives no inotify instance")
	}
	w := &watch{disk: disk, dir: dir, recursive: o.Recursive, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), down: down, dirs: make(map[int32]string)}
	if w.top, err = w.add(dir); err != nil {
		_ = w.file.Close()
		return nil, fault.Wrap(fault.Exhausted, err, "the host cannot watch %q", dir)
	}
	return w, nil
}

type watch struct {
	disk, dir string
	recursive bool
	down      <-chan struct{}
	file      *os.File

	mu   sync.Mutex // one Next at a time
	fd   int
	top  int32 // the watched directory's
	dirs map[int32]string
	over error
}

func (w *watch) Close() error {
	_ = w.file.Close() // twice is fine
	return nil
}

// add watches a directory, and those below where the watch is recursive.
func (w *watch) add(dir string) (int32, error) {
	wd, err := unix.InotifyAddWatch(w.fd, w.disk+dir, changed)
	if err != nil {
		return 0, err
	}
	w.dirs[int32(wd)] = dir
	if w.recursive {
		entries, _ := os.ReadDir(w.disk + dir) // it may be gone again
		for _, e := range entries {
			if e.IsDir() {
				_, _ = w.add(path.Join(dir, e.Name()))
			}
		}
	}
	return int32(wd), nil
}

// Next reads what the kernel queued.
func (w *watch) Next(ctx context.Context) ([]sandbox.FileEvent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		select {
		case <-ctx.Done():
		case <-w.down:
		case <-done:
			return
		}
		_ = w.file.SetReadDeadline(time.Unix(1, 0))
	}()
	defer func() {
		close(done)
		<-told
		_ = w.file.SetReadDeadline(time.Time{})
	}()
	buf := make([]byte, 64<<10)
	for w.over == nil {
		n, err := w.file.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			w.over = fault.New(fault.State, "the directory %q is no longer watched", w.dir)
			continue
		}
		if events := w.read(buf[:n]); len(events) > 0 {
			return events, nil
		}
	}
	return nil, w.over
}

// read makes events of what the kernel said.
func (w *watch) read(b []byte) (events []sandbox.FileEvent) {
	at := time.Now()
	say := func(t sandbox.FileEventType, name string, isDir bool) *sandbox.FileEvent {
		events = append(events, sandbox.FileEvent{Type: t, Path: strings.ToValidUTF8(name, "\uFFFD"), IsDir: isDir, At: at})
		return &events[len(events)-1]
	}
	var from string // the first half of a rename, and its cookie
	var cookie uint32
	fromDir := false
	movedOut := func() {
		if cookie != 0 {
			say(sandbox.FileDeleted, from, fromDir)
			w.forget(from)
			cookie = 0
		}
	}
	for len(b) >= headerSize {
		wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
		link, size := binary.NativeEndian.Uint32(b[8:]), int(binary.NativeEndian.Uint32(b[12:]))
		name, _, _ := strings.Cut(string(b[headerSize:headerSize+size]), "\x00")
		b = b[headerSize+size:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			say(sandbox.FileDropped, "", false).Dropped = 1
			continue
		}
		if mask&unix.IN_IGNORED != 0 {
			delete(w.dirs, wd)
			continue
		}
		dir, known := w.dirs[wd]
		if wd == w.top && mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0 {
			w.over = fault.New(fault.NotFound, "the directory %q was removed or moved away", w.dir)
			break
		}
		if !known || name == "" {
			continue // a directory itself: the one above tells
		}
		at, isDir := path.Join(dir, name), mask&unix.IN_ISDIR != 0
		if link == 0 || link != cookie {
			movedOut()
		}
		switch {
		case mask&unix.IN_MOVED_FROM != 0:
			from, cookie, fromDir = at, link, isDir
		case mask&unix.IN_MOVED_TO != 0 && link == cookie:
			say(sandbox.FileRenamed, at, isDir).From = strings.ToValidUTF8(from, "\uFFFD")
			w.move(from, at)
			cookie = 0
		case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
			say(sandbox.FileCreated, at, isDir)
			if isDir && w.recursive {
				events = append(events, w.arrived(at, mask&unix.IN_CREATE != 0)...)
			}
		case mask&unix.IN_DELETE != 0:
			say(sandbox.FileDeleted, at, isDir)
		case mask&unix.IN_MODIFY != 0:
			say(sandbox.FileModified, at, isDir)
		case mask&unix.IN_ATTRIB != 0:
			say(sandbox.FileAttributes, at, isDir)
		}
	}
	movedOut()
	return events
}

// arrived watches a new directory, and tells what came into it before.
func (w *watch) arrived(dir string, tell bool) (events []sandbox.FileEvent) {
	if _, err := w.add(dir); err != nil || !tell {
		return nil
	}
	_ = filepath.WalkDir(w.disk+dir, func(at string, e fs.DirEntry, err error) error {
		if name := strings.TrimPrefix(at, w.disk); err == nil && name != dir {
			events = append(events, sandbox.FileEvent{Type: sandbox.FileCreated, Path: strings.ToValidUTF8(name, "\uFFFD"), IsDir: e.IsDir(), At: time.Now()})
		}
		return nil
	})
	return events
}

// move renames the directories that are watched at or below from.
func (w *watch) move(from, to string) {
	for wd, dir := range w.dirs {
		if rest, ok := strings.CutPrefix(dir, from); ok && (rest == "" || rest[0] == '/') {
			w.dirs[wd] = to + rest
		}
	}
}

// forget ends the watching of a directory that was moved out.
func (w *watch) forget(dir string) {
	for wd, at := range w.dirs {
		if at == dir || strings.HasPrefix(at, dir+"/") {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) // it may be gone
			delete(w.dirs, wd)
		}
	}
}
