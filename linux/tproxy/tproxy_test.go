// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tproxy_test

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/destination"
	"sandpit.dev/linux/tproxy"
)

// within runs f on a thread that is in a network namespace of its own, whose loopback is up.
func within(t *testing.T, f func(t *testing.T)) {
	skiptest.WithoutRoot(t, "it makes network namespaces")
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := errors.Join(unix.Unshare(unix.CLONE_NEWNET), up("lo")); err != nil {
			t.Error(err)
			return
		}
		f(t)
	}()
	<-done
}

func up(name string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr)
}

const port = 53

// open has sockets take what the namespace sends.
func open(t *testing.T) (*net.TCPListener, *net.UDPConn) {
	t.Helper()
	l, u, err := take()
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
	t.Cleanup(func() { _, _ = l.Close(), u.Close() })
	return l, u
}

func take() (*net.TCPListener, *net.UDPConn, error) {
	tcp, err := tproxy.Socket(unix.SOCK_STREAM)
	if err != nil {
		return nil, nil, err
	}
	udp, err := tproxy.Socket(unix.SOCK_DGRAM)
	if err != nil {
		return nil, nil, err
	}
	return tproxy.Take(tcp, udp, port)
}

// refused dials where nobody listens.
func refused(t *testing.T, when string) {
	t.Helper()
	c, err := net.DialTimeout("tcp", "93.184.216.34:443", 5*time.Second)
	if err == nil {
		_ = c.Close()
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("%s: %v", when, err)
	}
}

func TestConnections(t *testing.T) {
	within(t, func(t *testing.T) {
		for range 2 {
			if err := tproxy.Steer(port); err != nil {
				t.Error(err)
				return
			}
			refused(t, "while nobody listens")
			l, u := open(t)
			for _, to := range []string{"93.184.216.34:443", "10.0.0.1:22", "240.0.0.1:9", "169.254.169.254:80", "127.0.0.1:53", "[2606:4700::1111]:80", "[fd00::1]:1", "[::1]:53"} {
				c, err := net.DialTimeout("tcp", to, 5*time.Second)
				if err != nil {
					t.Errorf("%s: %v", to, err)
					continue
				}
				a, err := l.Accept()
				if err != nil {
					t.Errorf("%s: %v", to, err)
					continue
				}
				if got := a.LocalAddr().String(); got != to {
					t.Errorf("%s comes as one to %s", to, got)
				}
				_, _ = a.Write([]byte("hello"))
				_ = a.Close()
				var b [10]byte
				if n, err := c.Read(b[:]); string(b[:n]) != "hello" {
					t.Errorf("%s: %q, %v", to, b[:n], err)
				}
				_ = c.Close()
			}
			// The loopback is the sandbox's own.
			own, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Error(err)
				return
			}
			c, err := net.DialTimeout("tcp", own.Addr().String(), 5*time.Second)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := own.Accept(); err != nil {
				t.Error(err)
			}
			_, _ = c.Close(), own.Close()
			_, _ = l.Close(), u.Close()
		}
		refused(t, "afterwards")
	})
}

func TestDatagrams(t *testing.T) {
	within(t, func(t *testing.T) {
		if err := tproxy.Steer(port); err != nil {
			t.Error(err)
			return
		}
		_, u := open(t)
		for _, to := range []string{"9.9.9.9:53", "127.0.0.1:53", "8.8.8.8:123", "[2620:fe::fe]:53", "[2620:fe::fe]:9", "224.0.0.1:7", "9.9.9.9:7"} {
			addr := netip.MustParseAddrPort(to)
			c, err := net.Dial("udp", to)
			if err != nil && !addr.Addr().IsMulticast() {
				t.Errorf("%s: %v", to, err)
			}
			if err != nil {
				continue
			}
			if _, err := c.Write([]byte(to)); err != nil {
				t.Errorf("%s: %v", to, err)
			}
			if addr.Addr().IsMulticast() {
				continue // what comes next is of another
			}
			_ = u.SetReadDeadline(time.Now().Add(5 * time.Second))
			var b, oob [destination.Room]byte
			n, o, _, from, err := u.ReadMsgUDPAddrPort(b[:], oob[:])
			if err != nil {
				t.Errorf("%s: %v", to, err)
				continue
			}
			if meant, _ := destination.Of(oob[:o]); meant != addr || string(b[:n]) != to {
				t.Errorf("%s: %q comes as one to %s", to, b[:n], meant)
			}
			if addr.Port() == port {
				if _, _, err := u.WriteMsgUDPAddrPort([]byte("told"), destination.Source(addr.Addr()), from); err != nil {
					t.Errorf("%s: answer: %v", to, err)
				}
				_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
				if n, err := c.Read(b[:]); string(b[:n]) != "told" {
					t.Errorf("%s: %q, %v", to, b[:n], err)
				}
			}
			_ = c.Close()
		}
	})
}

func TestWhereItIsRefused(t *testing.T) {
	within(t, func(t *testing.T) {
		l, err := net.Listen("tcp", ":53")
		if err != nil {
			t.Error(err)
			return
		}
		if _, _, err := take(); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("with the port taken: %v", err)
		}
		_ = l.Close()
	})
	t.Run("WithoutTheRight", func(t *testing.T) {
		within(t, func(t *testing.T) {
			data := [2]unix.CapUserData{}
			if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
				t.Error(err)
				return
			}
			if _, err := tproxy.Socket(unix.SOCK_DGRAM); fault.Of(err) != fault.Unsupported {
				t.Errorf("a socket: %v", err)
			}
			if err := tproxy.Steer(port); fault.Of(err) != fault.Unsupported || fault.As(err).Remedy == "" {
				t.Errorf("got %v", err)
			}
		})
	})
}
