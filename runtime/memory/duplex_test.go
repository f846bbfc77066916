// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"
)

func TestADuplexIsAConnection(t *testing.T) {
	nettest.TestConn(t, func() (near, far net.Conn, stop func(), err error) {
		near, far = duplex()
		return near, far, func() {
			_ = near.Close()
			_ = far.Close()
		}, nil
	})
}

func TestADuplexHoldsSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := duplex()
		// Nobody reads: what fits is taken, in both directions, and the rest waits.
		for _, c := range []net.Conn{near, far} {
			if n, err := c.Write(make([]byte, maxHeld)); n != maxHeld || err != nil {
				t.Fatalf("got %d, %v, want all of it taken", n, err)
			}
			_ = c.SetWriteDeadline(time.Now().Add(time.Hour))
			if n, err := c.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %d, %v, want no more than is held", n, err)
			}
		}
		// Who closes leaves what it wrote, and takes no more.
		if err := far.Close(); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(near); err != nil || !bytes.Equal(b, make([]byte, maxHeld)) {
			t.Errorf("got %d bytes, %v, want those that were held", len(b), err)
		}
		_ = near.SetWriteDeadline(time.Time{})
		if _, err := near.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("got %v, want EPIPE", err)
		}
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want net.ErrClosed", err)
		}
		_ = near.Close()
	})
}
