// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
)

// Identity says whose a store is, so that one that is missing or another's is not
// opened, nor a new one made in its place.
type Identity struct {
	// ID is of the installation; the store keeps it in a file of its own. "": it is not
	// looked at.
	ID string
	// Was is an id that the installation had before: a store with it is its own, and gets ID.
	Was string
	// Known: the store had the id before. One without it is another store.
	Known bool
	// Take makes whatever store is there the installation's, and a new one where none is.
	Take bool
}

// idFile is at the top of the store: of the file system in a loop file, and else of the
// store's directory.
const idFile = "id"

// There reports whether there is a store in dir: a loop file, an id, or anything in
// directories of layers. It mounts nothing.
func There(dir string) (bool, error) {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fault.Wrap(fault.Unavailable, err, "the store's directory %s cannot be opened", dir)
	}
	defer func() { _ = f.Close() }()
	return there(f)
}

// Place is the device and inode of the store in dir: of its loop file, else of the directory. A
// store that was put in the place of another has others; both are 0 where there is none.
func Place(dir string) (device, inode uint64, err error) {
	var st unix.Stat_t
	err = unix.Lstat(filepath.Join(dir, loopFile), &st)
	if errors.Is(err, unix.ENOENT) {
		err = unix.Stat(dir, &st)
	}
	if errors.Is(err, unix.ENOENT) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fault.Wrap(fault.Unavailable, err, "the store in %s cannot be looked at (%s)", dir, err)
	}
	return st.Dev, st.Ino, nil
}

func there(dir *os.File) (bool, error) {
	for _, name := range []string{loopFile, idFile} {
		if unix.Faccessat(int(dir.Fd()), name, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return true, nil
		}
	}
	return holdsLayers(dir)
}

// ReadID reads the id of the store in dir, "" where it has none. It mounts a loop file
// for that; the caller sees to it that no server has the store open.
func ReadID(ctx context.Context, dir string) (string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "the store's directory %s cannot be opened", dir)
	}
	defer func() { _ = f.Close() }()
	if err := lock(ctx, int(f.Fd())); err != nil {
		return "", err
	}
	file, err := openRegular(f, loopFile)
	if errors.Is(err, unix.ENOENT) {
		return readID(int(f.Fd()))
	}
	path := filepath.Join(dir, loopFile)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "%s cannot be opened (%s)", path, err)
	}
	store, err := mountStore(ctx, file, path, func(int) error { return nil })
	if err != nil {
		_ = file.Close()
		return "", err
	}
	defer store.Close()
	return readID(store.root)
}

func readID(top int) (string, error) {
	fd, err := unix.Openat(top, idFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("open the store's id: %w", err)
	}
	defer unix.Close(fd)
	b := make([]byte, 128)
	n, err := unix.Read(fd, b)
	if err != nil {
		return "", fmt.Errorf("read the store's id: %w", err)
	}
	return strings.TrimSpace(string(b[:n])), nil
}

// findMissing refuses a directory in which a store was that is gone. The caller holds the
// store's lock; nothing was made yet.
func (id Identity) findMissing(dir *os.File) error {
	if id.ID == "" || !id.Known || id.Take {
		return nil
	}
	held, err := there(dir)
	if err != nil || held {
		return err
	}
	return Missing(dir.Name())
}

// Missing is the error where the store that was in dir is gone.
func Missing(dir string) error {
	return fault.New(fault.State, "the disks of all sandboxes are missing: there is no store in %s, and this installation has one", dir).
		WithRemedy("mount the file system that holds them, or put a backup of the data directory in its place; to go on without them, start once with --new-store")
}

// Refuse says why a store in dir whose id is have is not to be opened, or nil.
func (id Identity) Refuse(dir, have string) error {
	switch {
	case have == id.ID, id.Take, have != "" && have == id.Was:
	case have != "":
		return fault.New(fault.State, "the store in %s is of another installation: its id is %s, and this one's %s", dir, have, id.ID).
			WithRemedy("put this installation's own store back; to make that one its own, whose sandboxes are then left alone, start once with --new-store")
	case id.Known:
		return fault.New(fault.State, "the store in %s is another than this installation had: it has no id", dir).
			WithRemedy("put this installation's own store back; to make that one its own, start once with --new-store")
	}
	return nil
}

// identify looks whose the store is that was chosen, before anything in it is changed. A
// store without room for the id is opened all the same.
func (s *Store) identify(dir *os.File) error {
	top := int(dir.Fd())
	if s.loop != nil {
		top = s.loop.root
	}
	err := s.opts.Identity.check(dir, top)
	if fault.Is(err, fault.Full) {
		s.log.Warn("the store has no room for the installation's id; it is written with a later start", "error", err)
		return nil
	}
	s.identified = err == nil && s.opts.Identity.ID != ""
	return err
}

// Identified reports whether the store has the id that it was opened with.
func (s *Store) Identified() bool { return s.identified }

// check compares the store that was opened, whose top is the directory top, with the id, and
// writes it where it has none. dir is the store's directory.
func (id Identity) check(dir *os.File, top int) error {
	if id.ID == "" {
		return nil
	}
	have, err := readID(top)
	if err != nil {
		return failed(err, "whose the store in %s is cannot be read", dir.Name())
	}
	if have == "" && id.Known && top != int(dir.Fd()) {
		// A store of plain directories that was empty may become a loop file.
		if before, err := readID(int(dir.Fd())); err == nil && before == id.ID {
			id.Known = false
		}
	}
	if err := id.Refuse(dir.Name(), have); err != nil {
		return err
	}
	if have != id.ID {
		if err := atomicfile.Write(fmt.Sprintf("/proc/self/fd/%d/%s", top, idFile), []byte(id.ID+"\n"), 0o600); err != nil {
			return failed(err, "the id cannot be written to the store in %s", dir.Name())
		}
		if err := unix.Fsync(top); err != nil {
			return failed(err, "the id cannot be written to the store in %s", dir.Name())
		}
	}
	if top == int(dir.Fd()) {
		return nil
	}
	if err := unix.Unlinkat(int(dir.Fd()), idFile, 0); err != nil && err != unix.ENOENT {
		return failed(err, "an id that is no longer used cannot be removed from %s", dir.Name())
	}
	return nil
}
