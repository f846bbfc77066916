// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// program listens on the loopback that the memory runtime's sandboxes share.
func program(t *testing.T, serve func(*net.TCPConn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				serve(nc.(*net.TCPConn))
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func TestPorts(t *testing.T) {
	t.Parallel()
	h := open(t)
	box := h.box()
	t.Run("AreListed", func(t *testing.T) {
		port := program(t, func(*net.TCPConn) {})
		l, err := h.Ports(t.Context(), box)
		must(t, err)
		found := false
		for _, p := range l.Items {
			found = found || p.Port == port && p.Address == "127.0.0.1"
		}
		if !found {
			t.Errorf("port %d is not in %+v", port, l)
		}
	})
	t.Run("CarryBytesAndEndInEachDirection", func(t *testing.T) {
		p, err := h.DialPort(t.Context(), box, program(t, func(nc *net.TCPConn) {
			_, _ = io.Copy(nc, nc)
			_, _ = io.WriteString(nc, " end")
		}))
		must(t, err)
		defer p.Close()
		sent := bytes.Repeat([]byte("0123456789"), 300_000)
		go func() {
			_, _ = p.Write(sent)
			_, _ = p.CloseWrite(), p.CloseWrite()
		}()
		got, err := io.ReadAll(p)
		if err != nil || string(got) != string(sent)+" end" {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		if _, err := p.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after its end: %v", err)
		}
	})
	t.Run("TellOfTheProgramsEndFirst", func(t *testing.T) {
		took := make(chan int, 1)
		p, err := h.DialPort(t.Context(), box, program(t, func(nc *net.TCPConn) {
			_ = nc.CloseWrite()
			b, _ := io.ReadAll(nc)
			took <- len(b)
		}))
		must(t, err)
		defer p.Close()
		if b, err := io.ReadAll(p); err != nil || len(b) != 0 {
			t.Fatalf("got %q, %v", b, err)
		}
		_, err = p.Write(make([]byte, 1_000_000))
		must(t, err)
		must(t, p.CloseWrite())
		if n := <-took; n != 1_000_000 {
			t.Errorf("the program got %d bytes", n)
		}
	})
	t.Run("DoNotMistakeACutForAnEnd", func(t *testing.T) {
		begun := make(chan struct{})
		p, err := h.DialPort(t.Context(), box, program(t, func(nc *net.TCPConn) {
			close(begun)
			_, _ = io.Copy(io.Discard, nc)
		}))
		must(t, err)
		defer p.Close()
		<-begun
		_, err = h.Stop(t.Context(), box)
		must(t, err)
		_, err = io.ReadAll(p)
		if fault.Of(err) != fault.Unavailable && fault.Of(err) != fault.State {
			t.Errorf("got %v", err)
		}
		_, err = h.Start(t.Context(), box)
		must(t, err)
	})
	t.Run("SayWhatIsWrong", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		free := l.Addr().(*net.TCPAddr).Port
		must(t, l.Close())
		_, err = h.DialPort(t.Context(), box, free)
		if e := wantCode(t, err, fault.Unavailable); e.Remedy == "" {
			t.Errorf("got %+v", e)
		}
		_, err = h.DialPort(t.Context(), box, 65536)
		wantCode(t, err, fault.Invalid)
		_, err = h.DialPort(t.Context(), "nothing", 80)
		wantCode(t, err, fault.NotFound)
		_, err = h.Preview(t.Context(), box, v1.CreatePreview{Port: 80})
		wantCode(t, err, fault.Unsupported) // by this house, which has none
	})
	t.Run("CloseWhileTheyAreRead", func(t *testing.T) {
		p, err := h.DialPort(t.Context(), box, program(t, func(nc *net.TCPConn) { _, _ = io.Copy(io.Discard, nc) }))
		must(t, err)
		read := make(chan error, 1)
		go func() {
			_, err := p.Read(make([]byte, 1))
			read <- err
		}()
		must(t, p.Close())
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
		must(t, p.Close())
	})
}
