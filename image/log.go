// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sandpit.dev/fault"
)

// buildLogName is the file with the output of the last build of an entry, and beside an image that is made
// in a sandbox with that of its build.
const buildLogName = "build.log"

// maxBuildLog bounds it, in bytes.
const maxBuildLog = 16 << 20

// buildLog is that file, of which the first bytes are kept. It belongs to one build.
type buildLog struct {
	*os.File
	left int64
}

// openLog begins the log of a build.
func (s *Store) openLog(name string, b *build) (*buildLog, error) {
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, buildLogName)
	// A new file: who reads the log of the build before goes on with that.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	b.logs = true
	s.mu.Unlock()
	return &buildLog{File: f, left: maxBuildLog}, nil
}

// Write keeps what there is room for. A log that cannot be written ends no build.
func (l *buildLog) Write(p []byte) (int, error) {
	keep := p[:min(int64(len(p)), l.left)]
	if len(keep) > 0 {
		if l.left -= int64(len(keep)); l.left == 0 {
			keep = append(slices.Clone(keep), "\nthe rest is not kept\n"...)
		}
		if _, err := l.File.Write(keep); err != nil {
			l.left = 0
		}
	}
	return len(p), nil
}

// logPause is how long who follows a log waits before looking for more of it.
const logPause = 100 * time.Millisecond

// Log writes the output of the last build of an entry, or of the one that goes on: with follow also what it
// writes until it has ended, by itself. flush, if not nil, is called when there is no more for now. Where
// no log is kept it is fault.NotFound. What it has is the output of programs, as they wrote it.
func (s *Store) Log(ctx context.Context, name string, w io.Writer, follow bool, flush func() error) error {
	r, err := resolve(s.recipes, *s.policy.Load(), name)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, r.Name, buildLogName)
	var f *os.File
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	for {
		// Whether it goes on is asked before the rest is read, so that nothing is missed.
		goes, logs := s.logging(r.Name)
		if f == nil && (!goes || logs) {
			if f, err = os.Open(path); errors.Is(err, fs.ErrNotExist) {
				return fault.New(fault.NotFound, "there is no log of a build of the image %q", r.Name).
					WithRemedy("build it; the log of the last build is kept")
			}
			if err != nil {
				return fault.Wrap(fault.Unavailable, err, "the log of the image %q cannot be read", r.Name)
			}
		}
		if f != nil {
			if _, err := io.Copy(w, io.LimitReader(f, 2*maxBuildLog)); err != nil {
				return err
			}
		}
		if flush != nil {
			if err := flush(); err != nil {
				return err
			}
		}
		if f != nil && (!follow || !goes) {
			return nil
		}
		if !follow {
			return fault.New(fault.NotFound, "the build of the image %q has written nothing yet", r.Name).WithRemedy("follow it, or ask again in a moment")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(logPause):
		}
	}
}

// logging reports whether a build of an entry goes on here, and whether that has begun its log.
func (s *Store) logging(name string) (goes, logs bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.builds[name]
	return b != nil, b != nil && b.logs
}
