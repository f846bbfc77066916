// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/mount"
)

// CheckIDs tries whether overlays whose upper directories are side by side in dir have
// file system ids of their own, by which alone the events of one can be told from those
// of another. Before Linux 6.6, and without trusted xattrs, an overlay has the id of
// the file system below; then only uppers in btrfs subvolumes of their own will do,
// which it does not try. It fails with [fault.Unsupported], with what would help.
//
// It makes a directory in dir and removes it again.
func CheckIDs(dir string) error {
	base, err := os.MkdirTemp(dir, ".overlay-")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "no overlay can be tried in %s", dir)
	}
	defer func() { _ = os.RemoveAll(base) }()
	same, err := sharesID(base)
	switch {
	case err != nil:
		return fault.Wrap(fault.Unsupported, err, "changed files cannot be told: no overlay can be mounted in %s (%s)", dir, err)
	case same:
		return fault.New(fault.Unsupported, "changed files cannot be told: on this kernel all sandboxes in plain directories have one file system id").
			WithRemedy("let the store be on btrfs (apt-get install btrfs-progs; `sandpit doctor` says what else it needs), or use Linux 6.6 or later")
	}
	return nil
}

// sharesID mounts an overlay below base and compares its id with that of what it is on.
func sharesID(base string) (bool, error) {
	params := []mount.Param{{Key: "index", Value: "on"}, {Key: "nfs_export", Value: "on"}}
	for key, name := range map[string]string{"lowerdir": "lower", "upperdir": "upper", "workdir": "work"} {
		if err := os.Mkdir(base+"/"+name, 0o700); err != nil {
			return false, err
		}
		// By way of a descriptor: a path may have what separates options.
		fd, err := unix.Open(base+"/"+name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return false, &os.PathError{Op: "open", Path: name, Err: err}
		}
		defer unix.Close(fd)
		params = append(params, mount.Param{Key: key, Value: fmt.Sprintf("/proc/self/fd/%d", fd)})
	}
	m, err := mount.New("overlay", 0, params...)
	if err != nil {
		return false, err
	}
	defer func() { _ = m.Close() }()
	var over, below unix.Statfs_t
	if err := unix.Fstatfs(int(m.Fd()), &over); err != nil {
		return false, fmt.Errorf("statfs: %w", err)
	}
	if err := unix.Statfs(base, &below); err != nil {
		return false, fmt.Errorf("statfs: %w", err)
	}
	return over.Fsid == below.Fsid, nil
}
