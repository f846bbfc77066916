// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import "golang.org/x/sys/unix"

// aheadMark is on the directory of a layer that an earlier version made before anybody asked
// for it. After a crash of the host it may be there of one that somebody has: it counts only
// where no record mentions the layer.
const aheadMark = "trusted.sandpit.ahead"

// unmark removes the mark of a directory that another layer is to be made of.
func unmark(fd int) error {
	if err := unix.Fremovexattr(fd, aheadMark); err != nil && err != unix.ENODATA && err != unix.EOPNOTSUPP {
		return failed(err, "the mark of a layer cannot be removed")
	}
	return nil
}

// madeAhead reports whether a layer has the mark. The caller has entered the store.
func (s *Store) madeAhead(id string) (bool, error) {
	fd, err := openDir(s.layers, id)
	if err == unix.ENOENT {
		return false, nil
	}
	if err == nil {
		defer unix.Close(fd)
		_, err = unix.Fgetxattr(fd, aheadMark, nil)
	}
	switch err {
	case nil:
		return true, nil
	case unix.ENODATA, unix.EOPNOTSUPP:
		return false, nil
	}
	return false, failed(err, "the mark of layer %s cannot be read", id)
}
