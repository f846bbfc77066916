// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// aheadMark is on the directory of a layer that was made before anybody asked for it.
const aheadMark = "trusted.sandpit.ahead"

// MarkAhead marks the layer as of no owner yet: a mark that is on the disk as soon as the layer is,
// and that Claim removes. Where the file system keeps no such marks it does nothing.
func (l *Layer) MarkAhead() error {
	if err := unix.Fsetxattr(l.fd, aheadMark, nil, 0); err != nil && err != unix.EOPNOTSUPP {
		return failed(err, "layer %s cannot be marked", l.id)
	}
	return nil
}

// Claim removes the mark of a layer that somebody has from now on. After a crash of the
// host it may be there again: it counts only where no record has the layer.
func (s *Store) Claim(id string) error {
	l, err := s.Open(id)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	return unmark(l.fd)
}

func unmark(fd int) error {
	if err := unix.Fremovexattr(fd, aheadMark); err != nil && err != unix.ENODATA && err != unix.EOPNOTSUPP {
		return failed(err, "the mark of a layer cannot be removed")
	}
	return nil
}

// Ahead reports whether a layer has the mark. One that is not there has none.
func (s *Store) Ahead(id string) (bool, error) {
	l, err := s.Open(id)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
		return false, err
	}
	defer func() { _ = l.Close() }()
	_, err = unix.Fgetxattr(l.fd, aheadMark, nil)
	if err == unix.ENODATA || err == unix.EOPNOTSUPP {
		return false, nil
	}
	if err != nil {
		return false, failed(err, "the mark of layer %s cannot be read", id)
	}
	return true, nil
}
