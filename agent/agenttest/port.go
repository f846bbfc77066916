// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// listenCode is a program that listens where its argument says, tells its
// process and port, and goes on with more code.
const listenCode = `import os, socket, sys
def listen(host, kind=socket.SOCK_STREAM, backlog=512):
    s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, kind)
    s.bind((host, 0))
    if kind == socket.SOCK_STREAM: s.listen(backlog)
    return s
def tell(s): print(os.getpid(), s.getsockname()[1], flush=True)
`

// listen runs a program that listens, and gives its process and its port.
func listen(t *testing.T, c *agent.Client, code string) (p *agent.Process, pid, port int) {
	t.Helper()
	p = start(t, c, agent.Command{Argv: []string{"python3", "-c", listenCode + code}})
	line := await(t, p, func(s string) bool { return strings.Contains(s, "\n") })
	words := strings.Fields(line)
	if len(words) < 2 {
		t.Fatalf("the listening program says %q", line)
	}
	pid, err := strconv.Atoi(words[0])
	port, err2 := strconv.Atoi(words[1])
	if err != nil || err2 != nil {
		t.Fatalf("the listening program says %q", line)
	}
	return p, pid, port
}

func dial(t *testing.T, c *agent.Client, port int) *agent.PortConn {
	t.Helper()
	nc, err := c.DialPort(within(t), port)
	if err != nil {
		t.Fatalf("DialPort %d: %v", port, err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

// on finds a port in the list.
func on(t *testing.T, c *agent.Client, port int) (sandbox.Port, bool) {
	t.Helper()
	all, _, err := c.Ports(within(t))
	if err != nil {
		t.Fatalf("Ports: %v", err)
	}
	for _, p := range all {
		if p.Port == port {
			return p, true
		}
	}
	return sandbox.Port{}, false
}

// hasIPv6 reports whether an address is one of IPv6, which not every network has.
func hasIPv6(host string) bool { return strings.Contains(host, ":") }

func testPorts(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	t.Run("ListsWhatListens", func(t *testing.T) {
		c := open(t)
		for host, want := range map[string]sandbox.Port{
			"127.0.0.1": {Protocol: "tcp"}, "0.0.0.0": {Protocol: "tcp"}, "::1": {Protocol: "tcp"}, "::": {Protocol: "tcp"},
			"127.0.0.3": {Protocol: "udp"},
		} {
			if o.IPv4Only && hasIPv6(host) {
				continue
			}
			kind := "socket.SOCK_STREAM"
			if want.Protocol == "udp" {
				kind = "socket.SOCK_DGRAM"
			}
			_, pid, port := listen(t, c, "open('/proc/self/comm', 'w').write('web')\ns = listen('"+host+"', "+kind+"); tell(s); __import__('time').sleep(600)")
			want.Port, want.Address, want.PID, want.Command = port, netip.MustParseAddr(host), pid, "web"
			got, ok := on(t, c, port)
			want.User = got.User
			if !ok || got != want || got.User == "" {
				t.Errorf("on %s: got %+v, want %+v", host, got, want)
			}
		}
	})
	t.Run("CleansTheNamesOfHostilePrograms", func(t *testing.T) {
		c := open(t)
		_, _, port := listen(t, c, `open('/proc/self/comm', 'wb').write(b'a\x1b[2J\n\xffz')
s = listen('127.0.0.1'); tell(s); __import__('time').sleep(600)`)
		got, ok := on(t, c, port)
		if !ok || got.Command != "a?[2J??z" {
			t.Errorf("got %v %q", ok, got.Command)
		}
	})
	t.Run("SaysNothingOfWhatDoesNotListen", func(t *testing.T) {
		c := open(t)
		_, _, port := listen(t, c, `s = listen('127.0.0.1'); b = socket.socket(); b.bind(('127.0.0.1', 0))
d = socket.create_connection(s.getsockname()); tell(b); __import__('time').sleep(600)`)
		if got, ok := on(t, c, port); ok {
			t.Errorf("a socket that is only bound is listed: %+v", got)
		}
		_, err := c.DialPort(within(t), port)
		wantCode(t, err, fault.Unavailable)
	})
}

// echo answers each connection with what it sends.
const echo = `import threading
def serve(c):
    while (b := c.recv(65536)): c.sendall(b)
    c.sendall(b' end'); c.close()
tell(s)
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
`

func testDial(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	t.Run("ReachesEveryOwnAddress", func(t *testing.T) {
		c := open(t)
		for _, host := range []string{"127.0.0.1", "0.0.0.0", "::1", "::", "127.0.0.9"} {
			if o.IPv4Only && hasIPv6(host) {
				continue
			}
			_, _, port := listen(t, c, "s = listen('"+host+"')\n"+echo)
			nc := dial(t, c, port)
			if _, err := nc.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 5)
			if _, err := io.ReadFull(nc, got); err != nil || string(got) != "hello" {
				t.Errorf("at %s: got %q, %v", host, got, err)
			}
		}
	})
	t.Run("ClosesHalf", func(t *testing.T) {
		c := open(t)
		_, _, port := listen(t, c, "s = listen('127.0.0.1')\n"+echo)
		nc := dial(t, c, port)
		sent := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
		go func() {
			_, _ = nc.Write(sent)
			_ = nc.CloseWrite()
		}()
		got, err := io.ReadAll(nc)
		if err != nil || string(got) != string(sent)+" end" {
			t.Errorf("got %d bytes and %v, want %d", len(got), err, len(sent)+4)
		}
		if _, err := nc.Write([]byte("x")); err == nil {
			t.Error("a closed half takes bytes")
		}
	})
	t.Run("TellsThatTheProgramSendsNoMore", func(t *testing.T) {
		c := open(t)
		p, _, port := listen(t, c, `s = listen('127.0.0.1'); tell(s); c = s.accept()[0]
c.sendall(b'bye'); c.shutdown(socket.SHUT_WR)
n = 0
while (b := c.recv(65536)): n += len(b)
print('got', n, flush=True)`)
		nc := dial(t, c, port)
		if got, err := io.ReadAll(nc); err != nil || string(got) != "bye" {
			t.Fatalf("got %q, %v", got, err)
		}
		if _, err := nc.Write(make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		await(t, p, func(s string) bool { return strings.Contains(s, "got 100000\n") })
	})
	t.Run("WaitsForTheProgram", func(t *testing.T) {
		c := open(t)
		p, _, port := listen(t, c, `s = listen('127.0.0.1'); tell(s)
slow = s.accept()[0]; s.accept()
n = 0
while (b := slow.recv(1 << 20)): n += len(b)
print('got', n, flush=True)`)
		nc := dial(t, c, port)
		const size = 64 << 20 // more than all buffers on the way
		written := make(chan error, 1)
		go func() {
			b := make([]byte, 1<<20)
			for range size / len(b) {
				if _, err := nc.Write(b); err != nil {
					written <- err
					return
				}
			}
			written <- nc.CloseWrite()
		}()
		dial(t, c, port) // while others are served
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		await(t, p, func(s string) bool { return strings.Contains(s, "got "+strconv.Itoa(size)+"\n") })
	})
	t.Run("EndsWithTheCaller", func(t *testing.T) {
		c := open(t)
		p, _, port := listen(t, c, `s = listen('127.0.0.1'); tell(s); c = s.accept()[0]
print('first', c.recv(100), flush=True)
try: print('then', c.recv(100), flush=True)
except OSError: print('then', b'', flush=True)`)
		nc := dial(t, c, port)
		if _, err := nc.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		await(t, p, func(s string) bool { return strings.Contains(s, "first") })
		_ = nc.Close()
		await(t, p, func(s string) bool { return strings.Contains(s, "then b''") })
	})
	t.Run("EndsWithTheProgram", func(t *testing.T) {
		c := open(t)
		p, _, port := listen(t, c, "s = listen('127.0.0.1'); tell(s); c = s.accept()[0]; c.sendall(b'x'); __import__('time').sleep(600)")
		nc := dial(t, c, port)
		if _, err := io.ReadFull(nc, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := c.Kill(within(t), p.ID(), "killed"); err != nil {
			t.Fatal(err)
		}
		if n, err := nc.Read(make([]byte, 1)); err == nil {
			t.Errorf("read %d bytes of a dead program", n)
		}
	})
	t.Run("SaysThatNothingListens", func(t *testing.T) {
		c := open(t)
		p, _, port := listen(t, c, "s = listen('127.0.0.1'); tell(s)")
		collect(t, p)
		_, err := c.DialPort(within(t), port)
		wantCode(t, err, fault.Unavailable)
		if e := fault.As(err); !strings.Contains(e.Message, "nothing listens on port "+strconv.Itoa(port)) || e.Remedy == "" {
			t.Errorf("got %q, %q", e.Message, e.Remedy)
		}
		for _, port := range []int{0, -1, 65536, 1 << 40} {
			_, err := c.DialPort(within(t), port)
			wantCode(t, err, fault.Invalid)
		}
	})
	t.Run("BoundsConnections", func(t *testing.T) {
		c := open(t)
		_, _, port := listen(t, c, "s = listen('127.0.0.1', backlog=1024); tell(s); __import__('time').sleep(600)")
		var all []*agent.PortConn
		for range agent.MaxPortConns {
			all = append(all, dial(t, c, port))
		}
		_, err := c.DialPort(within(t), port)
		wantCode(t, err, fault.Exhausted)
		_ = all[0].Close()
		ctx := within(t)
		for { // the agent hears of it in its own time
			nc, err := c.DialPort(ctx, port)
			if err == nil {
				_ = nc.Close()
				return
			}
			if !fault.Is(err, fault.Exhausted) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Fatalf("after one was closed: %v", err)
			}
		}
	})
}
