// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
	"sandpit.dev/internal/mcpsetup"
)

// backupSuffix is what the copy of a file as it was is called by.
const backupSuffix = ".before-sandpit"

// writeMCP merges a server into the first of a client's files that is there, or makes the first.
func (a *app) writeMCP(m mcpsetup.Client, s mcpsetup.Server, files []string) error {
	path := files[0]
	for _, f := range files {
		if _, err := os.Lstat(f); err == nil {
			path = f
			break
		}
	}
	const tries = 3 // some clients write their file all the time
	for range tries {
		done, err := a.mergeMCP(m, s, path)
		if done || err != nil {
			return err
		}
	}
	return fault.New(fault.Conflict, "%s is being written by another program", path).
		WithRemedy("end %s and try again", m.Title)
}

// mergeMCP merges once. It is false if the file changed meanwhile; then it was left alone.
func (a *app) mergeMCP(m mcpsetup.Client, s mcpsetup.Server, path string) (bool, error) {
	old, mode, err := readOwn(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return false, err
	}
	merged, err := m.Merge(old, s)
	if err != nil {
		return false, fault.New(fault.Invalid, "%s cannot be merged into: %v", path, err).
			WithRemedy("mend the file, or paste what sandpit mcp config %s prints", m.ID)
	}
	if fresh || s.Token != "" {
		mode &= 0o600
	}
	if fresh {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return false, err
		}
	}
	if bytes.Equal(merged, old) && !fresh {
		a.warn("%s is in %s already", s.Name, path)
		return true, os.Chmod(path, mode)
	}
	if !fresh {
		if err := atomicfile.Write(path+backupSuffix, old, mode); err != nil {
			return false, err
		}
	}
	now, _, err := readOwn(path)
	if errors.Is(err, fs.ErrNotExist) != fresh || !bytes.Equal(now, old) {
		return false, nil
	}
	if err := atomicfile.Write(path, merged, mode); err != nil {
		return false, err
	}
	a.warn("%s is in %s now", s.Name, path)
	if !fresh {
		a.warn("the file as it was is %s", path+backupSuffix)
	}
	return true, nil
}

// readOwn reads a plain file of the user's. A link is not followed: what is put in its place
// would not be what it led to.
func readOwn(path string) (text []byte, mode fs.FileMode, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		to, _ := os.Readlink(path)
		return nil, 0, fault.New(fault.Invalid, "%s is a link, to %s", path, to).
			WithRemedy("name the file itself with --file, if that is the one")
	}
	if err != nil {
		return nil, 0o600, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	owner, _ := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.Mode().IsRegular():
		return nil, 0, fault.New(fault.Invalid, "%s is not a plain file", path)
	case owner != nil && int(owner.Uid) != os.Geteuid():
		return nil, 0, fault.New(fault.Denied, "%s belongs to another user", path).
			WithRemedy("run this as that user")
	case st.Size() > mcpsetup.MaxFile:
		return nil, 0, fault.New(fault.TooLarge, "%s has %d bytes, more than %d", path, st.Size(), mcpsetup.MaxFile)
	}
	text, err = io.ReadAll(io.LimitReader(f, mcpsetup.MaxFile+1))
	return text, st.Mode().Perm(), err
}
