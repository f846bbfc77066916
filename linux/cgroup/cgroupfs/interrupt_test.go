// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroupfs

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Reclaim's time is the kernel's to say, so whoever waits for it must be able to stop.
func TestALongCallEndsWithItsContext(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := interruptible(ctx, func() error {
		// poll, unlike read, is never begun again after a signal's handler.
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(pipe[0]), Events: unix.POLLIN}}, -1)
		return err
	})
	if !errors.Is(err, unix.EINTR) {
		t.Errorf("got %v", err)
	}
	if !errors.Is(interruptible(ctx, func() error { return os.ErrInvalid }), unix.EINTR) {
		t.Error("it began after its end")
	}
}
