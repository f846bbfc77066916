// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroupfs

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWhoLooksIsWaitedFor has a driver be alone that closes while somebody looks whether its
// namespace is unused, and not while another driver has it open.
func TestWhoLooksIsWaitedFor(t *testing.T) {
	path := t.TempDir()
	open := func() int {
		fd, err := Openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	own, looking := open(), open()
	if err := Lock(looking, unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	time.AfterFunc(20*time.Millisecond, func() { released <- Lock(looking, unix.LOCK_UN) })
	if !Alone(own) {
		t.Error("who looks counts as another driver")
	}
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Lock(own, unix.LOCK_SH), Lock(looking, unix.LOCK_SH)); err != nil {
		t.Fatal(err)
	}
	if Alone(own) {
		t.Error("another driver counts as gone")
	}
}
