// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// lock is the right to work in a directory, with others or alone. The kernel gives it back when its holder
// is killed.
type lock struct{ file *os.File }

func (l *lock) release() { _ = l.file.Close() }

// begin takes the right to make images, which others have at the same time. What removes holds it alone,
// for a moment.
func (s *Store) begin() (*lock, error) {
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	if err := flock(f, unix.LOCK_SH); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &lock{f}, nil
}

// alone takes the right to remove: fault.Conflict while images are made.
func (s *Store) alone() (*lock, error) {
	l, err := s.lock(unix.LOCK_EX)
	if l == nil && err == nil {
		err = fault.New(fault.Conflict, "an image is being imported, and what it uses must stay").WithRemedy("try again when it is done")
	}
	return l, err
}

// lock returns nil, nil where others hold it.
func (s *Store) lock(how int) (*lock, error) {
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	if err = flock(f, how|unix.LOCK_NB); err == nil {
		return &lock{f}, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

func (s *Store) open() (*os.File, error) {
	return os.OpenFile(filepath.Join(s.dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err == nil || !errors.Is(err, unix.EINTR) {
			if err != nil {
				return fmt.Errorf("lock %s: %w", f.Name(), err)
			}
			return nil
		}
	}
}
