// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds the wait for the end of a thread, which takes microseconds.
const patience = 5 * time.Second

// Works tries whether this kernel keeps a status: with a thread that ends, which it reaps
// at once. It takes less than a millisecond, and leaves nothing.
func Works() bool {
	fd, err := endedThread()
	if err != nil { // Linux has pidfds of threads since 6.9
		return false
	}
	defer unix.Close(fd)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Microsecond) {
		if _, done, err := Status(fd); done || err != nil { // 6.13 has the call, and answers ESRCH
			return done
		}
	}
	return false
}

// endedThread returns the pidfd of a thread that has ended, or is about to.
func endedThread() (fd int, err error) {
	done := make(chan struct{})
	go thread(func() {
		fd, err = unix.PidfdOpen(unix.Gettid(), unix.PIDFD_THREAD)
		close(done)
	})
	<-done
	return fd, err
}

// thread calls fn on a thread that ends with it. The first one of a process cannot, so it is
// held meanwhile.
func thread(fn func()) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if unix.Gettid() != unix.Getpid() {
		fn()
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go thread(func() {
		defer close(done)
		fn()
	})
	<-done
}
