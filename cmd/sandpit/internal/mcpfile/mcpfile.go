// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mcpfile merges a server into the file that an MCP client reads. The file is the user's own and may be
// anything: one that cannot be understood is left alone.
package mcpfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
	"sandpit.dev/internal/mcpsetup"
)

// BackupSuffix is what the copy of a file as it was is called by.
const BackupSuffix = ".before-sandpit"

// path returns the first of a client's files that is there, or else the one to make.
func path(files []string) string {
	for _, f := range files {
		if _, err := os.Lstat(f); err == nil {
			return f
		}
	}
	return files[0]
}

// Mergeable reports why a server cannot be merged into a client's file, as it is now.
func Mergeable(m mcpsetup.Client, s mcpsetup.Server, files []string) error {
	path := path(files)
	old, _, err := readOwn(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := m.Merge(old, s); err != nil {
		return unmergeable(m, path, err)
	}
	return nil
}

func unmergeable(m mcpsetup.Client, path string, err error) error {
	return fault.New(fault.Invalid, "%s cannot be merged into: %v", path, err).
		WithRemedy("mend the file, or paste what sandpit mcp config %s prints", m.ID)
}

// Write merges a server into the first of a client's files that is there, or makes the first.
func Write(m mcpsetup.Client, s mcpsetup.Server, files []string, say func(format string, args ...any)) error {
	path := path(files)
	const tries = 3 // some clients write their file all the time
	for range tries {
		done, err := merge(m, s, path, say)
		if done || err != nil {
			return err
		}
	}
	return fault.New(fault.Conflict, "%s is being written by another program", path).
		WithRemedy("end %s and try again", m.Title)
}

// merge merges once. It is false if the file changed meanwhile; then it was left alone.
func merge(m mcpsetup.Client, s mcpsetup.Server, path string, say func(format string, args ...any)) (bool, error) {
	old, mode, err := readOwn(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return false, err
	}
	merged, err := m.Merge(old, s)
	if err != nil {
		return false, unmergeable(m, path, err)
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
		say("%s is in %s already", s.Name, path)
		return true, os.Chmod(path, mode)
	}
	if !fresh {
		if err := atomicfile.Write(path+BackupSuffix, old, mode); err != nil {
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
	say("%s is in %s now", s.Name, path)
	if !fresh {
		say("the file as it was is %s", path+BackupSuffix)
	}
	return true, nil
}

// readOwn reads a plain file of the user's. A link is not followed: what is put in its place
// would not be what it led to.
func readOwn(path string) (text []byte, mode fs.FileMode, err error) {
	f, err := openPlain(path)
	if errors.Is(err, errLink) {
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
	switch {
	case !st.Mode().IsRegular():
		return nil, 0, fault.New(fault.Invalid, "%s is not a plain file", path)
	case !owned(st):
		return nil, 0, fault.New(fault.Denied, "%s belongs to another user", path).
			WithRemedy("run this as that user")
	case st.Size() > mcpsetup.MaxFile:
		return nil, 0, fault.New(fault.TooLarge, "%s has %d bytes, more than %d", path, st.Size(), mcpsetup.MaxFile)
	}
	text, err = io.ReadAll(io.LimitReader(f, mcpsetup.MaxFile+1))
	return text, st.Mode().Perm(), err
}

// errLink is why openPlain opens nothing.
var errLink = errors.New("it is a link")
