// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/mux"
	"sandpit.dev/agent/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a door on a socket, behind which each call is echoed.
type house struct {
	path string
	key  *handshake.Key
	end  func()
}

func open(t *testing.T) *house {
	t.Helper()
	h := &house{path: filepath.Join(t.TempDir(), "s"), key: handshake.NewKey()}
	l, err := net.Listen("unix", h.path)
	if err != nil {
		t.Fatal(err)
	}
	door := serve.New(h.key)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if err := door.Run(ctx, l); err != nil {
			t.Error(err)
		}
	})
	all.Go(func() {
		for {
			nc, err := door.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer nc.Close()
				stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
				defer stop()
				_, _ = io.Copy(nc, nc)
			})
		}
	})
	h.end = sync.OnceFunc(func() { cancel(); _ = door.Close(); all.Wait() })
	t.Cleanup(h.end)
	return h
}

func (h *house) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", h.path)
}

func (h *house) dialer(what handshake.Carries) *handshake.Dialer {
	return &handshake.Dialer{Dial: h.dial, Key: h.key, What: what}
}

func answers(nc net.Conn) error {
	_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := nc.Write([]byte("hello")); err != nil {
		return err
	}
	b := make([]byte, 5)
	_, err := io.ReadFull(nc, b)
	if err == nil && string(b) != "hello" {
		err = errors.New("it answers " + string(b))
	}
	return err
}

func TestOneDoorForBothKinds(t *testing.T) {
	h := open(t)
	nc, err := h.dialer(handshake.OneCall).DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	d := mux.NewDialer(h.dialer(handshake.ManyCalls).DialContext)
	defer d.Close()
	for range 3 {
		st, err := d.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := answers(st); err != nil {
			t.Error(err)
		}
		_ = st.Close()
	}
	if err := answers(nc); err != nil {
		t.Error(err)
	}
	odd, err := h.dialer(77).DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer odd.Close()
	if err := answers(odd); err == nil {
		t.Error("a kind of connection that there is not is served")
	}
	h.end() // with all of them open
	if err := answers(nc); err == nil {
		t.Error("a connection outlives the door")
	}
}

// Strangers that come, stay and say nothing, or nonsense, keep nobody out who knows the key, and
// hold no more descriptors than their bound.
func TestACrowdOfStrangersKeepsNobodyOut(t *testing.T) {
	h := open(t)
	before := descriptors(t)
	ctx, cancel := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	const strangers = 300
	var turned atomic.Int64
	for i := range strangers {
		crowd.Go(func() {
			for ctx.Err() == nil {
				nc, err := h.dial(ctx)
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
				if i%2 == 1 {
					_, _ = nc.Write(make([]byte, 65))
				}
				_, _ = io.Copy(io.Discard, nc) // until it is sent away
				turned.Add(1)
				stop()
				_ = nc.Close()
			}
		})
	}
	most := 0
	for range 25 {
		nc, err := h.dialer(handshake.OneCall).DialContext(t.Context())
		if err != nil {
			t.Error(err)
			break
		}
		if err := answers(nc); err != nil {
			t.Error(err)
		}
		_ = nc.Close()
		most = max(most, descriptors(t))
	}
	cancel()
	crowd.Wait()
	// Of each stranger our own end is counted, too.
	if limit := before + strangers + 128 + 30; most > limit {
		t.Errorf("%d descriptors were open, %d before", most, before)
	}
	if turned.Load() < strangers {
		t.Errorf("%d strangers were sent away", turned.Load())
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestARelayCarriesWhatItDoesNotKnow(t *testing.T) {
	h := open(t)
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn := func(fd int) net.Conn {
		f := os.NewFile(uintptr(fd), "pair")
		defer f.Close()
		nc, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		return nc
	}
	mine, theirs := conn(ends[0]), conn(ends[1])
	ended := make(chan error)
	go func() { ended <- serve.Relay(t.Context(), theirs, h.path) }()
	d := handshake.Dialer{Key: h.key, What: handshake.OneCall, Dial: func(context.Context) (net.Conn, error) { return mine, nil }}
	nc, err := d.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := answers(nc); err != nil {
		t.Error(err)
	}
	_ = nc.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := serve.Relay(t.Context(), &net.UnixConn{}, h.path+"no"); err == nil {
		t.Error("it reaches a socket that there is not")
	}
}
