// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tproxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/tproxy"
)

// The two ends of a link, as a pod and its node have them.
const inside, outside = "10.9.0.2", "10.9.0.1"

// elsewhere calls functions on a thread in a network namespace of its own, at the other end of a link of the calling thread's.
func elsewhere(t *testing.T) func(f func() error) error {
	t.Helper()
	calls, done := make(chan func() error), make(chan error)
	thread := make(chan int)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
		}
		thread <- unix.Gettid()
		for f := range calls {
			done <- f()
		}
	}()
	t.Cleanup(func() { close(calls) })
	call := func(f func() error) error {
		calls <- f
		return <-done
	}
	ip(t, "link", "add", "out0", "type", "veth", "peer", "name", "out1")
	ip(t, "link", "set", "out1", "netns", strconv.Itoa(<-thread))
	ip(t, "addr", "add", inside+"/24", "dev", "out0")
	ip(t, "link", "set", "out0", "up")
	ip(t, "route", "add", "default", "via", outside)
	_ = call(func() error {
		ip(t, "addr", "add", outside+"/24", "dev", "out1")
		ip(t, "link", "set", "out1", "up")
		return nil
	})
	return call
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		runtime.Goexit()
	}
}

// echo answers each connection with what it says.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(c, c) }()
	}
}

// hears reports whether what is said on a connection comes back.
func hears(c net.Conn) error {
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	var b [4]byte
	if _, err := c.Write([]byte("word")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, b[:])
	return err
}

// waits reports whether something has come that was not taken yet.
func waits(c syscall.Conn) (some bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // a descriptor
		some = n != 0 || err != nil
	})
	return some || err != nil
}

// boundDialer dials from an address, or over an interface.
func boundDialer(network, from, device string) *net.Dialer {
	d := &net.Dialer{Timeout: time.Second, Control: func(_, _ string, c syscall.RawConn) (err error) {
		outer := c.Control(func(fd uintptr) {
			if device != "" {
				err = unix.BindToDevice(int(fd), device)
			}
		})
		return errors.Join(err, outer)
	}}
	if from != "" {
		a := netip.MustParseAddrPort(from)
		d.LocalAddr = net.TCPAddrFromAddrPort(a)
		if network == "udp" {
			d.LocalAddr = net.UDPAddrFromAddrPort(a)
		}
	}
	return d
}

func TestBesideAnotherInterface(t *testing.T) {
	within(t, func(t *testing.T) {
		call := elsewhere(t)
		agent, err := net.Listen("tcp", "0.0.0.0:26500")
		if err != nil {
			t.Error(err)
			return
		}
		defer agent.Close()
		go echo(agent)
		var world net.Listener
		var came net.PacketConn
		var before net.Conn
		err = call(func() (err error) {
			if world, err = net.Listen("tcp", outside+":9"); err != nil {
				return err
			}
			if came, err = net.ListenPacket("udp", outside+":9"); err != nil {
				return err
			}
			before, err = net.Dial("tcp", inside+":26500")
			return err
		})
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _, _, _ = world.Close(), came.Close(), before.Close() }()
		if c, err := net.DialTimeout("tcp", outside+":9", 5*time.Second); err != nil {
			t.Errorf("before, the world is not reached: %v", err)
		} else {
			_ = c.Close()
			_, _ = world.Accept()
		}

		reached := netip.MustParseAddrPort(inside + ":26500")
		for range 2 {
			if err := tproxy.SteerBeside(port, reached); err != nil {
				t.Error(err)
				return
			}
		}
		if err := hears(before); err != nil {
			t.Errorf("a connection from before: %v", err)
		}
		var after net.Conn
		if err := call(func() (err error) { after, err = net.DialTimeout("tcp", inside+":26500", 5*time.Second); return err }); err != nil {
			t.Errorf("the agent is not reached: %v", err)
			return
		}
		defer after.Close()
		if err := hears(after); err != nil {
			t.Errorf("a connection from outside: %v", err)
		}

		refused(t, "while nobody listens")
		l, u := open(t)
		for _, to := range []string{"93.184.216.34:443", outside + ":9", outside + ":26500", "93.184.216.34:26500", "[2606:4700::1111]:80"} {
			c, err := net.DialTimeout("tcp", to, 5*time.Second)
			if err != nil {
				t.Errorf("%s: %v", to, err)
				continue
			}
			if a, err := l.Accept(); err != nil || a.LocalAddr().String() != to {
				t.Errorf("%s comes as %v, %v", to, a, err)
			}
			_ = c.Close()
		}
		own, err := net.Listen("tcp", inside+":7000")
		if err != nil {
			t.Error(err)
			return
		}
		go echo(own)
		for _, to := range []string{inside + ":7000", inside + ":26500", "127.0.0.1:26500"} {
			c, err := net.DialTimeout("tcp", to, 5*time.Second)
			if err == nil {
				err = hears(c)
				_ = c.Close()
			}
			if err != nil {
				t.Errorf("its own %s: %v", to, err)
			}
		}

		_, _, _ = own.Close(), agent.Close(), u.Close()
		for what, d := range map[string]*net.Dialer{
			"over the interface":                      boundDialer("tcp", "", "out0"),
			"from its address":                        boundDialer("tcp", inside+":0", ""),
			"from the agent's port":                   boundDialer("tcp", inside+":26500", ""),
			"from the agent's port on that interface": boundDialer("tcp", inside+":26500", "out0"),
		} {
			if c, err := d.DialContext(context.Background(), "tcp", outside+":9"); err == nil {
				t.Errorf("%s the world is reached from %s", what, c.LocalAddr())
			}
		}
		for what, d := range map[string]*net.Dialer{
			"over the interface":    boundDialer("udp", "", "out0"),
			"from the agent's port": boundDialer("udp", inside+":26500", ""),
		} {
			c, err := d.DialContext(context.Background(), "udp", outside+":9")
			if err == nil {
				_, err = c.Write([]byte("out"))
			}
			if !errors.Is(err, unix.EPERM) {
				t.Errorf("a datagram %s: %v", what, err)
			}
		}
		for what, c := range map[string]syscall.Conn{"a connection": world.(*net.TCPListener), "a datagram": came.(*net.UDPConn)} {
			if waits(c) {
				t.Errorf("%s got out", what)
			}
		}
		if err := hears(after); err != nil {
			t.Errorf("a connection from outside, in the end: %v", err)
		}
	})
}
