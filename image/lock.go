// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a waiting builder looks again. The kernel's blocking flock cannot be
// cancelled when a caller goes away.
const lockPoll = 200 * time.Millisecond

const lockName = ".lock"

// lock is the right to build in a directory. It is held by an open file
// description that the build's programs inherit: it is free again only when
// the process that took it and all of its programs are gone.
type lock struct {
	file *os.File
}

// tryLock returns nil, nil when another process, or another caller in this one, holds it.
func tryLock(dir string) (*lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		return &lock{file: f}, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
}

// waitLock takes the lock, calling waiting before each further try.
func waitLock(ctx context.Context, dir string, waiting func()) (*lock, error) {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		l, err := tryLock(dir)
		if l != nil || err != nil {
			return l, err
		}
		waiting()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

func (l *lock) release() { _ = l.file.Close() }
