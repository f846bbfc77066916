// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroupfs

import (
	"context"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// WriteUntil writes a value to a file of a group, which may take the kernel long, until ctx is
// done. It is EINTR then.
func WriteUntil(ctx context.Context, dir int, path string, value []byte) error {
	return interruptible(ctx, func() error {
		fd, err := Openat(dir, path, unix.O_WRONLY)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.Write(fd, value)
		return err
	})
}

// interruptible runs f, which is one long system call, and when ctx is done sends its
// thread a signal that Go's runtime takes and that ends the call, again and again
// until f is back.
func interruptible(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return unix.EINTR
	}
	const pause = 5 * time.Millisecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	back, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-back:
			return
		case <-ctx.Done():
		}
		for {
			_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			select {
			case <-back:
				return
			case <-time.After(pause):
			}
		}
	}()
	err := f()
	close(back)
	<-watched // before the thread is another's
	return err
}
