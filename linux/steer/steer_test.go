// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package steer

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
)

// namespace makes a network namespace with its loopback up.
func namespace(tb testing.TB) *os.File {
	tb.Helper()
	skiptest.WithoutRoot(tb, "it makes network namespaces")
	type made struct {
		f   *os.File
		err error
	}
	c := make(chan made)
	go func() {
		runtime.LockOSThread() // its thread ends with it
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			c <- made{err: err}
			return
		}
		if err := loopbackUp(); err != nil {
			c <- made{err: err}
			return
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		c <- made{f, err}
	}()
	m := <-c
	if m.err != nil {
		tb.Fatal(m.err)
	}
	tb.Cleanup(func() { _ = m.f.Close() })
	return m.f
}

func steered(tb testing.TB) (*Steering, *os.File) {
	tb.Helper()
	ns := namespace(tb)
	s, err := Open(ns)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s, ns
}

// inside runs f as a program in the namespace would.
func inside[T any](tb testing.TB, ns *os.File, f func() (T, error)) (T, error) {
	tb.Helper()
	var got T
	err := within(ns, func() (err error) {
		got, err = f()
		return err
	})
	return got, err
}

func dial(tb testing.TB, ns *os.File, network, address string) (net.Conn, error) {
	tb.Helper()
	return inside(tb, ns, func() (net.Conn, error) { return net.DialTimeout(network, address, 5*time.Second) })
}

func TestConnectionsComeWithWhereTheyWereMeantToGo(t *testing.T) {
	s, ns := steered(t)
	go func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprintln(c, c.LocalAddr())
			_ = c.Close()
		}
	}()
	for _, to := range []string{"192.0.2.1:80", "8.8.8.8:53", "10.1.2.3:22", "169.254.169.254:80", "255.1.1.1:9", "0.1.2.3:4", "[2001:db8::1]:443", "[fe80::1]:1", "[fd00::2]:65535"} {
		if strings.HasPrefix(to, "[fe80") || strings.HasPrefix(to, "255.") || strings.HasPrefix(to, "0.") {
			continue // no program can name them without more
		}
		c, err := dial(t, ns, "tcp", to)
		if err != nil {
			t.Errorf("%s: %v", to, err)
			continue
		}
		got, err := bufio.NewReader(c).ReadString('\n')
		if strings.TrimSpace(got) != to || err != nil {
			t.Errorf("%s: the other side says %q, %v", to, got, err)
		}
		_ = c.Close()
	}
}

func TestTheLoopbackIsTheSandboxesOwn(t *testing.T) {
	_, ns := steered(t)
	for _, at := range []string{"127.0.0.1:0", "127.1.2.3:0", "[::1]:0", "0.0.0.0:0"} {
		l, err := inside(t, ns, func() (net.Listener, error) { return net.Listen("tcp", at) })
		if err != nil {
			t.Fatal(err)
		}
		to := strings.Replace(l.Addr().String(), "0.0.0.0", "127.0.0.1", 1)
		to = strings.Replace(to, "[::]", "[::1]", 1)
		go func() {
			c, err := l.Accept()
			if err == nil {
				_, _ = c.Write([]byte("own"))
				_ = c.Close()
			}
		}()
		c, err := dial(t, ns, "tcp", to)
		if err != nil {
			t.Fatalf("%s: %v", to, err)
		}
		b := make([]byte, 3)
		if _, err := c.Read(b); err != nil || string(b) != "own" {
			t.Errorf("%s: %q, %v", to, b, err)
		}
		_ = c.Close()
		_ = l.Close()
	}
}

func TestNobodyInsideTakesAnAddressOver(t *testing.T) {
	s, ns := steered(t)
	// All addresses are local, so a program may well listen on one. It hears nothing.
	l, err := inside(t, ns, func() (net.Listener, error) { return net.Listen("tcp", "192.0.2.7:443") })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := dial(t, ns, "tcp", "192.0.2.7:443")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = s.tcp.SetDeadline(time.Now().Add(5 * time.Second))
	got, err := s.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = got.Close()
}

func TestDatagrams(t *testing.T) {
	s, ns := steered(t)
	for _, to := range []string{"192.0.2.1:53", "192.0.2.1:443", "[2001:db8::1]:53", "[2001:db8::2]:123"} {
		c, err := dial(t, ns, "udp", to)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("question")); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		_ = s.udp.SetDeadline(time.Now().Add(5 * time.Second))
		n, from, meant, err := s.Read(b)
		if err != nil || string(b[:n]) != "question" || meant.String() != to {
			t.Fatalf("%s: %q for %s, %v", to, b[:n], meant, err)
		}
		if meant.Port() == 53 {
			if err := s.Answer([]byte("name"), meant.Addr(), from); err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			if n, err := c.Read(b); err != nil || string(b[:n]) != "name" {
				t.Fatalf("%s: %q, %v", to, b[:n], err)
			}
		}
		back, err := s.Answering(meant, from)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := back.Write([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if n, err := c.Read(b); err != nil || string(b[:n]) != "answer" {
			t.Fatalf("%s: %q, %v", to, b[:n], err)
		}
		// What is sent on goes to the socket that answers, and no longer to all.
		if _, err := c.Write([]byte("more")); err != nil {
			t.Fatal(err)
		}
		_ = back.SetDeadline(time.Now().Add(5 * time.Second))
		if n, err := back.Read(b); err != nil || string(b[:n]) != "more" {
			t.Fatalf("%s: %q, %v", to, b[:n], err)
		}
		_ = back.Close()
		_ = c.Close()
	}
}

func TestNothingIsReachedWithoutTheServer(t *testing.T) {
	s, ns := steered(t)
	_ = s.link.Close() // as the kernel does when the server ends
	_ = s.tcp.Close()
	_ = s.udp.Close()
	if c, err := dial(t, ns, "tcp", "192.0.2.1:80"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("without a server: %v, %v, want refused", c, err)
	}
	again, err := Open(ns)
	if err != nil {
		t.Fatal("the next server cannot steer:", err)
	}
	if c, err := dial(t, ns, "tcp", "192.0.2.1:80"); err != nil {
		t.Error(err)
	} else {
		_ = c.Close()
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"192.0.2.1:80", "[2001:db8::1]:80"} {
		if c, err := dial(t, ns, "tcp", to); !errors.Is(err, unix.ENETUNREACH) {
			t.Errorf("after Close, %s: %v, %v, want unreachable", to, c, err)
		}
	}
}

func TestPort53Taken(t *testing.T) {
	ns := namespace(t)
	l, err := inside(t, ns, func() (net.Listener, error) { return net.Listen("tcp", ":53") })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Open(ns); err == nil || !strings.Contains(err.Error(), "port 53") {
		t.Errorf("got %v", err)
	}
}

// A process that the server starts has copies of its descriptors until it is its program.
func TestASteeringFollowsOneWhoseSocketsAreStillHeld(t *testing.T) {
	s, ns := steered(t)
	tcp, err := s.tcp.File()
	if err != nil {
		t.Fatal(err)
	}
	udp, err := s.udp.File()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	let := time.AfterFunc(20*time.Millisecond, func() {
		tcp.Close()
		udp.Close()
	})
	defer let.Stop()
	next, err := Open(ns)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsMadeAfterClose(t *testing.T) {
	s, _ := steered(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := s.Answering(netip.MustParseAddrPort("192.0.2.1:123"), netip.MustParseAddrPort("127.0.0.1:9"))
	if err == nil {
		t.Errorf("a socket after Close: %v, %v", c, err)
	}
}

func TestADescriptorInUseIsNotClosed(t *testing.T) {
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	err = held(f, func(fd int) error {
		if err := f.Close(); err != nil { // from elsewhere, meanwhile
			return err
		}
		_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		return err
	})
	if err != nil {
		t.Error("the descriptor in use:", err)
	}
	if err := held(f, func(int) error { return nil }); err == nil {
		t.Error("a closed file is still used")
	}
}

func BenchmarkOpen(b *testing.B) {
	spaces := make([]*os.File, b.N)
	for i := range spaces {
		spaces[i] = namespace(b)
	}
	b.ResetTimer()
	for _, ns := range spaces {
		s, err := Open(ns)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = s.Close()
		b.StartTimer()
	}
}
