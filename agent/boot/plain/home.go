// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// makeHome makes the user's home where nothing has its name. What is there stays as it is, whoever
// owns it: the image gave it to them, or the sandbox's root. A link is not followed, in whose place the directory that
// was made may be by now: a volume that is mounted above it is another sandbox's, too.
func (c *Config) makeHome() error {
	if err := os.Mkdir(c.Home, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	dir, err := os.OpenFile(c.Home, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(dir.Chown(int(c.UID), int(c.GID)), dir.Close())
}

// begin makes what it should be of a directory that is root's and empty. A link is not followed.
func (c *Config) begin(path string) error {
	dir, err := os.OpenFile(c.DiskAt+path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	return c.give(dir, path != filepath.Dir(c.Home))
}

// recovered is what the file system of a disk that is new has.
const recovered = "lost+found"

// give has everybody look into a directory that is root's and empty, and has it be the user's, if it is to be.
func (c *Config) give(dir *os.File, own bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil || st.Uid != 0 { //nolint:gosec // a descriptor
		return err
	}
	names, err := dir.Readdirnames(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(names) > 1 || len(names) == 1 && names[0] != recovered {
		return nil
	}
	if err := dir.Chmod(0o755); err != nil || !own {
		return err
	}
	return dir.Chown(int(c.UID), int(c.GID))
}
