// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// lockFile is the file in the data directory that its server locks.
const lockFile = "lock"

// lockData locks the data directory for this server, until the file is closed or the process
// ends. Two servers on one directory would take each other's sandboxes for leftovers.
func lockData(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the data directory %s cannot be made", dir).
			WithRemedy("run as root, or choose another with --data")
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the data directory %s cannot be written", dir).
			WithRemedy("run as root, or choose another with --data")
	}
	if err := flock(f); err != nil {
		owner, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fault.New(fault.State, "the data directory %s has a server already (pid %s)", dir, sandbox.Clip(strings.TrimSpace(string(owner)), 12)).
				WithRemedy("stop that server, or choose another directory with --data")
		}
		return nil, fault.Wrap(fault.Unavailable, err, "the data directory %s cannot be locked", dir)
	}
	if _, err := os.Lstat(filepath.Join(dir, restoringFile)); !errors.Is(err, fs.ErrNotExist) {
		_ = f.Close()
		return nil, fault.New(fault.State, "the data directory %s is the half of a backup: its restore was cut off", dir).
			WithRemedy("empty the directory, and restore the backup again")
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	return f, nil
}

// flock waits a moment for a server that was just killed: the kernel releases its descriptors,
// and with them its lock, when it has removed the last of its threads.
func flock(f *os.File) error {
	const patience, pause = 2 * time.Second, 20 * time.Millisecond
	for deadline := time.Now().Add(patience); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
		<-time.After(pause) // the release of a lock is not signalled
	}
}

// private refuses a directory that others could have laid out, or can change:
// what is in it is trusted.
func private(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the data directory %s cannot be looked at", dir)
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fault.New(fault.Denied, "the data directory %s belongs to user %d with mode %04o; it has to be the server's own (user %d), and nobody else's to write",
			dir, st.Uid, st.Mode&0o7777, os.Geteuid()).
			WithRemedy("choose another with --data, or mend it: chown %d %s && chmod 700 %s", os.Geteuid(), dir, dir)
	}
	return nil
}
