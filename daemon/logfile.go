// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// logFile is a log that is rotated when it has limit bytes. The file before is kept beside it
// with the ending .1, so that both together have at most twice that. It is safe for concurrent
// use.
type logFile struct {
	path  string
	limit int64

	mu   sync.Mutex
	f    *os.File
	size int64
}

// openLogFile opens the log at path, or creates it. If standard error is that file already, as
// for a server that `sandpit up` started, standard error follows a rotation: Go's runtime writes
// crashes there.
func openLogFile(path string, limit int64) (*logFile, error) {
	l := &logFile{path: path, limit: limit}
	if err := l.open(); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the log %s cannot be written", path)
	}
	return l, nil
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		_ = f.Close() // the error is what matters
		return err
	}
	l.f, l.size = f, st.Size()
	return nil
}

// Write appends one line. A log that cannot be rotated continues in the same file.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(line)) > l.limit {
		l.rotate()
	}
	n, err := l.f.Write(line)
	l.size += int64(n)
	return n, err
}

func (l *logFile) rotate() {
	old := l.f
	onStderr := sameFile(old, os.Stderr)
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		l.size = 0 // not at each line again
		return
	}
	if err := l.open(); err != nil {
		l.f, l.size = old, 0
		return
	}
	if onStderr {
		_ = unix.Dup3(int(l.f.Fd()), int(os.Stderr.Fd()), 0) // else a crash is written to the old one
	}
	_ = old.Close()
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

// Close closes the log.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}
