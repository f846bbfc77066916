// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package interrupt

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// A connection that broke raises the same signal as output that nobody reads; only the
// latter ends the program.
func TestABrokenConnectionIsNoInterruption(t *testing.T) {
	ctx, stop := Context(t.Context())
	defer stop()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGPIPE)
	defer signal.Stop(told)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("the write: %v", err)
	}
	<-told
	select {
	case <-ctx.Done():
		t.Error("the program was interrupted")
	case <-time.After(50 * time.Millisecond): // it would be at once
	}
}
