// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sandpit.dev/internal/atomicfile"
)

// maxFile is the size of a file of keys at most, in bytes.
const maxFile = 64 << 10

// ReadFile reads a ring from a file, see Parse. A file that others than its owner and
// group can read, or others than its owner can write, is refused: it may be known, or
// somebody else's.
func ReadFile(path string) (*Ring, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o027 != 0:
		return nil, fmt.Errorf("%s has mode %04o, so that others can read or write it; want 0600 (chmod 600 %s)", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	r, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// ReadOrMakeFile is ReadFile, and creates a missing file with a new key, mode 0600. It is for one
// process at a time.
func ReadOrMakeFile(path string) (*Ring, error) {
	r, err := ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := atomicfile.Write(path, []byte(Generate()+"\n"), 0o600); err != nil {
		return nil, err
	}
	return ReadFile(path)
}
