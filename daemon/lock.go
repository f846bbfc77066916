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
	"strconv"
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
		pid := owner(f)
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fault.New(fault.State, "the data directory %s has a server already (pid %s)", dir, sandbox.Clip(pid, 12)).
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

// How long a lock is waited for that another process has: until the threads of a server that
// was just killed are gone, and, where its process is gone, until what it was starting is,
// too. A child has the lock until it runs its own program, which takes as long as a busy host
// gives it no processor.
const (
	lockPatience = 2 * time.Second
	deadPatience = 30 * time.Second
)

// flock locks a file that has its owner's process id in it.
func flock(f *os.File) error {
	for begun := time.Now(); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if waited := time.Since(begun); !errors.Is(err, unix.EWOULDBLOCK) || waited > deadPatience || waited > lockPatience && !gone(owner(f)) {
			return err
		}
		<-time.After(20 * time.Millisecond) // the release of a lock is not signalled
	}
}

// owner returns the process id that a lock file has, as text.
func owner(f *os.File) string {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 32))
	return strings.TrimSpace(string(b))
}

// gone reports whether no process has this id.
func gone(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && n > 0 && errors.Is(unix.Kill(n, 0), unix.ESRCH)
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
