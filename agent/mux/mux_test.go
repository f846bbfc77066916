// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mux_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandpit.dev/agent/mux"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sockets is both ends of a real connection.
func sockets(t testing.TB) (server, agent net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	server, err = net.Dial("unix", l.Addr().String())
	if err == nil {
		agent, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(); _ = agent.Close() })
	return server, agent
}

// serve answers each stream of nc by handle, until the session ends.
func serve(t testing.TB, nc net.Conn, handle func(net.Conn)) {
	t.Helper()
	a, err := mux.NewAgent(nc)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			st, err := a.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer st.Close()
				handle(st)
			})
		}
	})
	t.Cleanup(func() { _ = a.Close(); all.Wait() })
}

// dialer opens streams over nc.
func dialer(t testing.TB, nc net.Conn) *mux.Dialer {
	d := mux.NewDialer(func(context.Context) (net.Conn, error) { return nc, nil })
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func dial(t testing.TB, d *mux.Dialer) net.Conn {
	t.Helper()
	st, err := d.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	_ = st.SetDeadline(time.Now().Add(60 * time.Second))
	return st
}

func echo(nc net.Conn) { _, _ = io.Copy(nc, nc) }

func TestStreamsAreConnections(t *testing.T) {
	server, agent := sockets(t)
	serve(t, agent, echo)
	d := dialer(t, server)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			st, err := d.DialContext(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer st.Close()
			text := bytes.Repeat([]byte{byte(i), 7}, 100_000)
			go func() { _, _ = st.Write(text) }()
			got := make([]byte, len(text))
			if _, err := io.ReadFull(st, got); err != nil || !bytes.Equal(got, text) {
				t.Errorf("stream %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

// A stream that nobody reads takes its window and no more, and holds up nobody.
func TestWhoDoesNotReadHoldsUpNobody(t *testing.T) {
	server, agent := sockets(t)
	var flooded atomic.Int64
	serve(t, agent, func(nc net.Conn) {
		b := make([]byte, 1)
		if _, err := io.ReadFull(nc, b); err != nil {
			return
		}
		if b[0] == 'e' {
			echo(nc)
			return
		}
		piece := make([]byte, 10_000)
		for {
			n, err := nc.Write(piece)
			flooded.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	d := dialer(t, server)
	const floods, window = 20, 256 << 10
	for range floods {
		_, _ = dial(t, d).Write([]byte("f"))
	}
	st := dial(t, d)
	_, _ = st.Write([]byte("e"))
	for range 200 {
		if _, err := st.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(st, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
	}
	if n := flooded.Load(); n > floods*window {
		t.Errorf("%d bytes are kept for who does not read", n)
	}
}

func TestDeadlinesAndEnds(t *testing.T) {
	server, agent := sockets(t)
	streams := make(chan net.Conn)
	let := make(chan struct{})
	serve(t, agent, func(nc net.Conn) { streams <- nc; <-let })
	d := dialer(t, server)
	st := dial(t, d)
	_, _ = st.Write([]byte("hello"))
	theirs := <-streams
	defer func() { let <- struct{}{} }()

	_ = theirs.SetReadDeadline(time.Now().Add(60 * time.Second))
	if g := theirs.(interface{ Gone() bool }).Gone(); g {
		t.Error("it is gone while it is there")
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(theirs, got); err != nil || string(got) != "hello" {
		t.Errorf("what Gone has read: %q %v", got, err)
	}
	_ = theirs.SetReadDeadline(time.Now().Add(time.Millisecond))
	var timeout net.Error
	if _, err := theirs.Read(got); !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read that is late: %v", err)
	}
	_ = theirs.SetReadDeadline(time.Time{})
	_ = theirs.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	n, err := theirs.Write(make([]byte, 1<<20))
	if n < 200_000 || n > 300_000 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write into a full window: %d %v", n, err)
	}
	ended := make(chan error, 1)
	go func() { _, err := theirs.Read(got); ended <- err }()
	_ = theirs.SetReadDeadline(time.Unix(1, 0)) // as of who is called off
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read that is called off: %v", err)
	}
	_ = theirs.SetReadDeadline(time.Time{})

	_, _ = st.Write([]byte("last words"))
	_ = st.Close()
	for !theirs.(interface{ Gone() bool }).Gone() {
		if t.Context().Err() != nil {
			t.Fatal("it is there after it has gone")
		}
	}
	if rest, err := io.ReadAll(theirs); err != nil || string(rest) != "last words" {
		t.Errorf("%q %v", rest, err)
	}
	if _, err := st.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("writing after the end: %v", err)
	}
	// What goes to nobody ends.
	_ = theirs.SetWriteDeadline(time.Time{})
	if _, err := theirs.Write(make([]byte, 1<<20)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("writing to who has gone: %v", err)
	}
}

// What an agent sent before it closed is there, however late it is read.
func TestWhatWasSentBeforeTheEndIsRead(t *testing.T) {
	server, agent := sockets(t)
	closed := make(chan struct{})
	serve(t, agent, func(nc net.Conn) {
		_, _ = nc.Write(bytes.Repeat([]byte("x"), 200_000))
		_ = nc.Close()
		close(closed)
	})
	st := dial(t, dialer(t, server))
	<-closed
	if b, err := io.ReadAll(st); len(b) != 200_000 || err != nil {
		t.Errorf("%d %v", len(b), err)
	}
}

func TestAStreamThatBrokeIsOpenedAnew(t *testing.T) {
	var carriers []net.Conn
	d := mux.NewDialer(func(context.Context) (net.Conn, error) {
		server, agent := sockets(t)
		serve(t, agent, echo)
		carriers = append(carriers, agent)
		return server, nil
	})
	defer d.Close()
	first := dial(t, d)
	_ = carriers[0].Close()
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("a stream outlives what carried it")
	}
	second := dial(t, d)
	_, _ = second.Write([]byte("x"))
	if _, err := io.ReadFull(second, make([]byte, 1)); err != nil || len(carriers) != 2 {
		t.Errorf("%v, %d carriers", err, len(carriers))
	}
	_ = d.Close()
	if _, err := d.DialContext(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	failed := errors.New("no way")
	d = mux.NewDialer(func(context.Context) (net.Conn, error) { return nil, failed })
	if _, err := d.DialContext(t.Context()); !errors.Is(err, failed) {
		t.Errorf("where it cannot dial: %v", err)
	}
}

// An agent that takes nothing, as one that is frozen, holds nobody longer than its context.
func TestOpeningIsBoundByItsContext(t *testing.T) {
	server, agent := sockets(t)
	a, err := mux.NewAgent(agent) // and nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	d := dialer(t, server)
	for range 256 {
		dial(t, d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := d.DialContext(ctx); ended <- err }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func frame(kind byte, flags uint16, stream, length uint32, body []byte) []byte {
	b := []byte{0, kind}
	b = binary.BigEndian.AppendUint16(b, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	b = binary.BigEndian.AppendUint32(b, length)
	return append(b, body...)
}

// An agent is among hostile code, and may be part of it: what it must not send ends the stream.
func TestAnAgentThatSendsWhatNoneMay(t *testing.T) {
	for name, hostile := range map[string][]byte{
		"StreamsOfItsOwn":   bytes.Repeat(frame(1, 1, 2, 0, nil), 10_000),
		"Pings":             bytes.Repeat(frame(2, 1, 0, 7, nil), 10_000),
		"OverTheWindow":     bytes.Repeat(frame(0, 0, 1, 200_000, make([]byte, 200_000)), 3),
		"AFrameTooLarge":    frame(0, 0, 1, 1<<31, make([]byte, 1<<20)),
		"AnUnknownType":     frame(9, 0, 1, 0, nil),
		"AnotherVersion":    {7, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
		"AnEndTwice":        append(frame(1, 4, 1, 0, nil), frame(1, 4, 1, 0, nil)...),
		"SomethingElse":     []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"StreamsInTheData":  append(frame(0, 0, 1, 3, []byte("abc")), frame(0, 1, 2, 0, nil)...),
		"ForAStreamOfNoOne": frame(0, 0, 99, 400_000, make([]byte, 400_000)),
	} {
		t.Run(name, func(t *testing.T) {
			server, agent := sockets(t)
			d := dialer(t, server)
			st := dial(t, d)
			var all sync.WaitGroup
			all.Go(func() { _, _ = io.Copy(io.Discard, agent) })
			all.Go(func() { _, _ = agent.Write(hostile) })
			all.Wait() // until the client has hung up: what is read gives the agent room for more
			if b, _ := io.ReadAll(st); len(b) > 256<<10 {
				t.Errorf("%d bytes came through", len(b))
			}
		})
	}
}

// BenchmarkCall is a call's way there and back while a download has the stream.
func BenchmarkCall(b *testing.B) {
	for name, beside := range map[string]bool{"Alone": false, "BesideADownload": true} {
		b.Run(name, func(b *testing.B) {
			server, agent := sockets(b)
			serve(b, agent, func(nc net.Conn) {
				w := make([]byte, 1)
				if _, err := io.ReadFull(nc, w); err != nil {
					return
				}
				if w[0] == 'e' {
					echo(nc)
					return
				}
				for piece := make([]byte, 32<<10); ; {
					if _, err := nc.Write(piece); err != nil {
						return
					}
				}
			})
			d := dialer(b, server)
			var all sync.WaitGroup
			if beside {
				st := dial(b, d)
				_, _ = st.Write([]byte("d"))
				all.Go(func() { _, _ = io.Copy(io.Discard, st) })
			}
			for b.Loop() {
				st, err := d.DialContext(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				_, _ = st.Write([]byte("e1"))
				if _, err := io.ReadFull(st, make([]byte, 1)); err != nil {
					b.Fatal(err)
				}
				_ = st.Close()
			}
			_ = d.Close()
			all.Wait()
		})
	}
}
