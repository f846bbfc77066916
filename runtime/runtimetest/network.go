// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

func network(t *testing.T, s *suite) {
	s.need(t, runtime.Network)
	t.Run("ConnectionsComeToTheServer", func(t *testing.T) { networkConnections(t, s) })
	t.Run("DatagramsComeToTheServer", func(t *testing.T) { networkDatagrams(t, s) })
	t.Run("TheLoopbackStaysTheSandboxes", func(t *testing.T) { networkLoopback(t, s) })
	t.Run("NothingLeavesBeforeAndAfter", func(t *testing.T) { networkEnds(t, s) })
	t.Run("TheNextServerGoesOn", func(t *testing.T) { networkRestart(t, s) })
	t.Run("NeighboursAreNotReached", func(t *testing.T) { networkNeighbours(t, s) })
	t.Run("NoWayAround", func(t *testing.T) { networkAttacks(t, s) })
	t.Run("NothingGetsOutUnseen", func(t *testing.T) { networkStrike(t, s) })
	t.Run("ASecretIsPutInOnTheWay", func(t *testing.T) { networkSecret(t, s) })
	t.Run("OneThatIsDown", func(t *testing.T) {
		b := s.create(t, s.spec())
		if err := b.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		_, err := b.Instance.(runtime.Networker).Steer(t.Context())
		wantCode(t, "Steer", err, fault.State)
	})
}

// steer brings a sandbox's traffic to the test.
func (b *box) steer() runtime.Traffic {
	b.t.Helper()
	n, ok := b.Instance.(runtime.Networker)
	if !ok {
		b.t.Fatal("Probe claims a network and the instance is no runtime.Networker")
	}
	traffic, err := n.Steer(b.t.Context())
	if err != nil {
		b.t.Fatalf("Steer: %v", err)
	}
	b.t.Cleanup(func() { _ = traffic.Close() })
	return traffic
}

// greet answers every connection with where it was meant to go, until the traffic ends.
func greet(traffic runtime.Traffic) {
	for {
		c, err := traffic.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			line := make([]byte, 100)
			n, _ := c.Read(line)
			_, _ = fmt.Fprintf(c, "%s from %s\n", line[:n], c.LocalAddr())
		}()
	}
}

// tcp is a program that connects, says a word, and prints the answer.
func tcp(to string) string {
	host, port, _ := net.SplitHostPort(to)
	return fmt.Sprintf(`python3 -c "
import socket
s = socket.create_connection(('%s', %s), 5)
s.sendall(b'hello')
print(s.makefile().readline().strip())" 2>&1 | tail -n1`, host, port)
}

func networkConnections(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	go greet(b.steer())
	for _, to := range []string{"93.184.216.34:443", "10.0.0.1:22", "169.254.169.254:80", "8.8.8.8:53", "[2606:4700::1111]:80", "[fd00::1]:1"} {
		if got, want := b.ok(tcp(to)), "hello from "+to; got != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
		if s.has(t, runtime.RootUser) {
			if got, want := strings.TrimSpace(b.asRoot(tcp(to)).Stdout), "hello from "+to; got != want {
				t.Errorf("%s as root: %q, want %q", to, got, want)
			}
		}
	}
}

func networkDatagrams(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	traffic := b.steer()
	type datagram struct {
		text     string
		from, to netip.AddrPort
	}
	got := make(chan datagram, 10)
	go func() {
		buf := make([]byte, 2000)
		for {
			n, from, to, err := traffic.Read(buf)
			if err != nil {
				close(got)
				return
			}
			got <- datagram{string(buf[:n]), from, to}
		}
	}()
	for _, to := range []string{"9.9.9.9:53", "127.0.0.1:53", "[2620:fe::fe]:53", "9.9.9.9:123"} {
		addr := netip.MustParseAddrPort(to)
		p := b.begin(agent.Command{Shell: fmt.Sprintf(`exec python3 -c "
import socket
s = socket.socket(socket.AF_INET6 if ':' in '%[1]s' else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
s.sendto(b'ask', ('%[1]s', %[2]d))
print('asked', flush=True)
print(*s.recvfrom(100)[:2])"`, addr.Addr(), addr.Port())}, "asked\n")
		select {
		case d := <-got:
			if d.text != "ask" || d.to != addr {
				t.Errorf("%s: %q for %s", to, d.text, d.to)
			}
			if addr.Port() == 53 {
				if err := traffic.Answer([]byte("told"), d.to.Addr(), d.from); err != nil {
					t.Errorf("%s: Answer: %v", to, err)
				}
				break
			}
			back, err := traffic.Answering(d.to, d.from)
			if err != nil {
				t.Fatalf("%s: Answering: %v", to, err)
			}
			defer back.Close()
			if _, err := back.Write([]byte("told")); err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the datagram does not come", to)
		}
		o, err := collect(t.Context(), p)
		if err != nil || !strings.HasPrefix(o.Stdout, fmt.Sprintf("b'told' ('%s', %d", addr.Addr(), addr.Port())) {
			t.Errorf("%s: the program has %q, %q, %v", to, o.Stdout, o.Stderr, err)
		}
	}
}

func networkLoopback(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	go greet(b.steer())
	got := b.ok(`python3 -c "
import socket, threading
for family, listen, to in ((2, '127.0.0.1', '127.0.0.1'), (2, '0.0.0.0', '127.9.9.9'), (10, '::1', '::1'), (10, '::', '127.0.0.1')):
    l = socket.socket(family); l.bind((listen, 0)); l.listen()
    c = socket.create_connection((to, l.getsockname()[1]), 5)
    a, _ = l.accept(); a.sendall(b'own'); a.close()
    print(c.recv(10).decode())"`)
	if got != "own\nown\nown\nown" {
		t.Errorf("servers inside: %q", got)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := b.ok(tcp(l.Addr().String())); !strings.Contains(got, "ConnectionRefused") {
		t.Errorf("the host's loopback: %q", got)
	}
}

func networkEnds(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	to := "93.184.216.34:443"
	unreachable := func(when string) {
		t.Helper()
		want := "OSError: [Errno 101] Network is unreachable"
		if o, ok := b.otherwise[withoutNetwork]; ok {
			t.Logf("another outcome is fine here, %q: %s", o.Want, o.Why)
			want = o.Want
		}
		if got := b.ok(tcp(to)); !slices.Contains(strings.Split(want, " or "), got) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	unreachable("before")
	traffic := b.steer()
	if err := traffic.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := traffic.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	if _, err := traffic.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if got := b.ok(tcp(to)); !strings.Contains(got, "Network is unreachable") && !strings.Contains(got, "ConnectionRefused") {
		t.Errorf("after: %q", got)
	}
	go greet(b.steer())
	if got := b.ok(tcp(to)); got != "hello from "+to {
		t.Errorf("steered again: %q", got)
	}
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context(), s.specOf(b)); err != nil {
		t.Fatal(err)
	}
	unreachable("in its next life")
}

// withoutNetwork is the name of what a connection ends with where there is no network.
const withoutNetwork = "connect without a network"

// specOf is a spec to start b with again.
func (s *suite) specOf(b *box) runtime.Spec {
	spec := s.spec()
	spec.ID = b.Handle().ID
	return spec
}

func networkRestart(t *testing.T, s *suite) {
	s.need(t, runtime.Reopen)
	b := s.createFor(t, s.spec())
	traffic := b.steer()
	go greet(traffic)
	b.ok(tcp("93.184.216.34:443"))
	// As the kernel does with the descriptors of a server that ends.
	if err := traffic.Close(); err != nil {
		t.Fatal(err)
	}
	again := s.reopen(t, b)
	if got := again.ok(tcp("93.184.216.34:443")); !strings.Contains(got, "unreachable") && !strings.Contains(got, "Refused") {
		t.Errorf("without being steered: %q", got)
	}
	go greet(again.steer())
	if got := again.ok(tcp("93.184.216.34:443")); got != "hello from 93.184.216.34:443" {
		t.Errorf("after the restart: %q", got)
	}
}

func networkNeighbours(t *testing.T, s *suite) {
	a, b := s.create(t, s.spec()), s.create(t, s.spec())
	ta := a.steer()
	go greet(b.steer())
	p := b.begin(agent.Command{Shell: `exec python3 -c "
import socket
l = socket.socket(); l.bind(('0.0.0.0', 7000)); l.listen()
print('listening', flush=True)
l.settimeout(2); l.accept(); print('reached')"`}, "listening\n")
	go func() {
		for {
			c, err := ta.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "a's own\n")
			_ = c.Close()
		}
	}()
	for _, to := range []string{"93.184.216.34:7000", "10.0.0.2:7000"} {
		if got := a.ok(tcp(to)); got != "a's own" {
			t.Errorf("%s: %q", to, got)
		}
	}
	if o, err := collect(t.Context(), p); err != nil || strings.Contains(o.Stdout, "reached") {
		t.Errorf("the neighbour: %q, %v", o.Stdout, err)
	}
}

// networkWays are ways around what a sandbox's traffic is brought through.
var networkWays = []attempt{
	both("find another interface", "lo", `result = ', '.join(n for _, n in socket.if_nameindex())`),
	both("add a route", eperm, `netlink(24, 5 | 0x400, struct.pack('BBBBBBBBI', 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack('HHI', 8, 4, 1))`),
	both("take the route away", eperm, `netlink(25, 5, struct.pack('BBBBBBBBI', 2, 0, 0, 0, 255, 4, 254, 2, 0) + struct.pack('HHI', 8, 4, 1))`),
	both("add a rule of routing", eperm, `netlink(32, 5 | 0x400, struct.pack('BBBBBBBBI', 2, 0, 0, 0, 254, 0, 0, 1, 0))`),
	both("take loopback down", eperm, `netlink(16, 5, struct.pack('BBHiII', 0, 0, 0, 1, 0, 1))`),
	both("add an interface", eperm, `kind = struct.pack('HH', 9, 1) + b'dummy\0\0\0'
netlink(16, 5 | 0x600, struct.pack('BBHiII', 0, 0, 0, 0, 0, 0) + struct.pack('HH', 4 + len(kind), 18) + kind)`),
	both("write rules of a firewall", "REFUSED EPROTONOSUPPORT or "+eperm, `s = socket.socket(16, 3, 12)
s.send(struct.pack('IHHIIBBHHH8s', 32, 10 << 8, 5, 1, 0, 1, 0, 0, 12, 1, b'sandpit\0'))
code = struct.unpack('i', s.recv(4096)[16:20])[0]
if code: raise OSError(-code, 'netfilter')`),
	both("send what is no TCP and no UDP", eperm, `result = each(lambda p: socket.socket(socket.AF_INET, socket.SOCK_RAW, p), [1, 2, 47, 132, 255])`),
	both("open sockets of SCTP, DCCP and L2TP", eperm, `result = each(lambda a: socket.socket(*a), [(2, 1, 132), (10, 1, 132), (10, 5, 132), (2, 6, 33), (2, 2, 115)])`),
	both("be transparent", eperm, `result = each(lambda f: socket.socket(f).setsockopt(*{2: (0, 19), 10: (41, 75)}[f], 1), [2, 10])`),
	both("choose an interface", "REFUSED ENODEV or REFUSED EPERM", `socket.socket().setsockopt(socket.SOL_SOCKET, 25, b'eth0\0')`),
	both("choose a route in the packet", "REFUSED EPERM or REFUSED EINVAL or REFUSED ECONNREFUSED or REFUSED ETIMEDOUT", `s = socket.socket(); s.settimeout(3)
s.setsockopt(0, 4, bytes([131, 7, 4, 10, 0, 0, 1, 0])); s.connect(('93.184.216.34', 80)); s.sendall(b'x')
if s.recv(100): raise OSError(1, 'steered all the same')`),
	both("load a program into the kernel", eperm, `call('bpf', 5, ctypes.create_string_buffer(120), 120)`),
	both("leave for another network", eperm, `call('unshare', 0x40000000)`),
	both("enter the host's network", "REFUSED EPERM or REFUSED EACCES", `fd = os.open('/proc/1/ns/net', os.O_RDONLY); call('setns', fd, 0x40000000); raise OSError(1, 'its own')`),
	asUser("take the port of names", eacces, `result = each(lambda k: socket.socket(socket.AF_INET, k).bind(('127.0.0.1', 53)), [1])`),
}

func networkAttacks(t *testing.T, s *suite) {
	facts := hostFacts(t, s)
	b := s.create(t, s.spec())
	go greet(b.steer())
	facts = withBox(t, s, b, facts)
	for _, user := range []string{"sandbox", "root"} {
		t.Run(user, func(t *testing.T) {
			if user == "root" {
				s.need(t, runtime.RootUser)
			}
			b.attempts(t, user, facts, networkWays)
		})
	}
	if got := b.ok(tcp("93.184.216.34:443")); got != "hello from 93.184.216.34:443" {
		t.Errorf("after the attempts: %q", got)
	}
}
