// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package traffic_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/traffic"
	"sandpit.dev/fault"
)

func TestConnectionsSayWhereTheyWereMeantToGo(t *testing.T) {
	b := newBox(t)
	s := b.mustBegin()
	for _, to := range []string{"93.184.216.34:443", "10.0.0.1:22", "127.0.0.1:53", "[2606:4700::1111]:80", "[::1]:53"} {
		go func() {
			c, err := s.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, c.LocalAddr().String()+" from "+c.RemoteAddr().String())
			_ = c.Close()
		}()
		c := b.mustDial(to)
		if got, err := io.ReadAll(c); string(got) != to+" from "+c.LocalAddr().String() || err != nil {
			t.Errorf("%s: %q, %v", to, got, err)
		}
	}
}

// Each direction carries what it should while the other does, and ends by itself.
func TestEachDirectionEndsByItself(t *testing.T) {
	b := newBox(t)
	s := b.mustBegin()
	inside, outside := b.pair(s)
	const size = 20 << 20
	carry := func(to io.Writer, end func() error, from io.Reader) {
		sent, came := sha256.New(), sha256.New()
		both(func() {
			if _, err := io.Copy(io.MultiWriter(to, sent), io.LimitReader(rand.Reader, size)); err != nil {
				t.Error(err)
			}
			if err := end(); err != nil {
				t.Error(err)
			}
		}, func() {
			if n, err := io.Copy(came, from); n != size || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
		if !bytes.Equal(sent.Sum(nil), came.Sum(nil)) {
			t.Error("other bytes came than were sent")
		}
	}
	both(func() { carry(inside, inside.CloseWrite, outside) }, func() { carry(outside, outside.CloseWrite, inside) })
	for range 2 {
		inside, outside := b.pair(s)
		if err := inside.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(outside); len(got) != 0 || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		carry(outside, outside.Close, inside) // what is written before Close arrives
		if _, err := outside.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a write after Close: %v", err)
		}
	}
}

func TestBothEndsCanBreakOff(t *testing.T) {
	b := newBox(t)
	s := b.mustBegin()
	inside, outside := b.pair(s)
	_, _ = io.WriteString(outside, "last words")
	buf := make([]byte, 100)
	if n, err := inside.Read(buf); string(buf[:n]) != "last words" || err != nil {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	_ = outside.SetLinger(0)
	_ = outside.Close()
	if _, err := inside.Read(buf); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the program has %v", err)
	}
	inside, outside = b.pair(s)
	_ = inside.SetLinger(0)
	_ = inside.Close()
	if _, err := outside.Read(buf); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the server has %v", err)
	}
	if _, err := outside.Write(buf); err == nil {
		t.Error("the server can write to nobody")
	}
}

func TestDeadlines(t *testing.T) {
	b := newBox(t)
	inside, outside := b.pair(b.mustBegin())
	buf := make([]byte, 1<<20)
	_ = outside.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := outside.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read: %v", err)
	}
	_ = outside.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	sent := 0
	for {
		n, err := outside.Write(buf)
		sent += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil || sent > 100<<20 {
			t.Fatalf("%d bytes are taken that nobody reads, %v", sent, err)
		}
	}
	_ = outside.SetDeadline(time.Time{})
	_ = outside.CloseWrite()
	if n, err := io.Copy(io.Discard, inside); n != int64(sent) || err != nil {
		t.Errorf("%d of %d bytes came, %v", n, sent, err)
	}
	_, _ = io.WriteString(inside, "later")
	if n, err := outside.Read(buf); string(buf[:n]) != "later" || err != nil {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

// Who reads nothing, at either end, holds up nobody else, and keeps little.
func TestWhoReadsNothingHoldsUpNobody(t *testing.T) {
	b := newBox(t)
	s := b.mustBegin()
	piece := make([]byte, 64<<10)
	for range 40 {
		inside, outside := b.pair(s)
		for _, c := range []net.Conn{inside, outside} {
			for sent := 0; ; {
				_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
				n, err := c.Write(piece)
				if sent += n; errors.Is(err, os.ErrDeadlineExceeded) {
					break
				}
				if err != nil || sent > 100<<20 {
					t.Fatalf("%d bytes are taken that nobody reads, %v", sent, err)
				}
			}
		}
	}
	if kept := residentOf(t, b.pid); kept > 80<<20 {
		t.Errorf("the agent keeps %d bytes", kept)
	}
	inside, outside := b.pair(s)
	go func() { _, _ = io.Copy(outside, outside) }()
	for range 100 {
		if _, err := inside.Write(piece[:1000]); err != nil {
			t.Fatal(err)
		}
		_ = inside.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadFull(inside, piece[:1000]); err != nil {
			t.Fatal(err)
		}
	}
}

// residentOf returns the anonymous memory of a process, in bytes.
func residentOf(t *testing.T, pid int) int64 {
	t.Helper()
	list, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); f[0] == "RssAnon:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("the process has no memory")
	return 0
}

func TestDatagrams(t *testing.T) {
	b := newBox(t)
	s := b.mustBegin()
	for _, to := range []string{"9.9.9.9:53", "127.0.0.1:53", "[2620:fe::fe]:53", "8.8.8.8:123", "[2620:fe::fe]:9"} {
		addr := netip.MustParseAddrPort(to)
		c, err := b.dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(c, "ask")
		var buf [100]byte
		n, from, meant, err := s.Read(buf[:])
		if err != nil || string(buf[:n]) != "ask" || meant != addr || from != netip.MustParseAddrPort(c.LocalAddr().String()) {
			t.Errorf("%s: %q from %s for %s, %v", to, buf[:n], from, meant, err)
		}
		if addr.Port() == traffic.Port {
			if err := s.Answer([]byte("told"), meant.Addr(), from); err != nil {
				t.Error(err)
			}
			if n, err := c.Read(buf[:]); string(buf[:n]) != "told" {
				t.Errorf("%s: %q, %v", to, buf[:n], err)
			}
			continue
		}
		path, err := s.Answering(meant, from)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, _ = io.WriteString(path, "told")
			if n, err := c.Read(buf[:]); string(buf[:n]) != "told" {
				t.Errorf("%s: %q, %v", to, buf[:n], err)
			}
			_, _ = io.WriteString(c, "more")
			_ = path.SetReadDeadline(time.Now().Add(10 * time.Second))
			if n, err := path.Read(buf[:]); string(buf[:n]) != "more" {
				t.Errorf("%s: %q, %v", to, buf[:n], err)
			}
		}
		_ = path.Close()
		if _, err := path.Read(buf[:]); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", to, err)
		}
		_, _ = io.WriteString(c, "new")
		if n, _, _, err := s.Read(buf[:]); string(buf[:n]) != "new" {
			t.Errorf("%s: %q, %v", to, buf[:n], err)
		}
	}
}

// A flood that nobody reads is dropped inside, and counted. What has a path goes on.
func TestAFloodOfDatagrams(t *testing.T) {
	b := newBox(t)
	s := b.mustBegin()
	calm, err := b.dial("udp", "8.8.8.8:123")
	if err != nil {
		t.Fatal(err)
	}
	defer calm.Close()
	_, _ = io.WriteString(calm, "begin")
	var buf [2000]byte
	_, from, to, err := s.Read(buf[:])
	if err != nil {
		t.Fatal(err)
	}
	path, err := s.Answering(to, from)
	if err != nil {
		t.Fatal(err)
	}
	flood, err := b.dial("udp", "9.9.9.9:9")
	if err != nil {
		t.Fatal(err)
	}
	defer flood.Close()
	for range 20_000 {
		_, _ = flood.Write(buf[:1000])
	}
	for try := 0; ; try++ {
		_, _ = io.WriteString(calm, "go on")
		_ = path.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if n, err := path.Read(buf[:]); string(buf[:n]) == "go on" {
			break
		} else if try == 50 {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	for range 64 { // that were asked for
		if _, _, _, err := s.Read(buf[:]); err != nil {
			t.Fatal(err)
		}
	}
	came := make(chan struct{})
	go func() { // what comes before the agent heard of the room is dropped
		for {
			_, _ = flood.Write(make([]byte, 1000))
			select {
			case <-came:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	if _, _, _, err := s.Read(buf[:]); err != nil {
		t.Fatal(err)
	}
	close(came)
	if n := s.Lost(); n == 0 || n > 20_000 {
		t.Errorf("%d are counted as lost", n)
	}
}

// One session has the traffic, the newest. Without one connections are refused.
func TestSessionsFollowEachOther(t *testing.T) {
	b := newBox(t)
	first := b.mustBegin()
	inside, _ := b.pair(first)
	second := b.mustBegin()
	if _, err := first.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the first session accepts: %v", err)
	}
	if _, err := inside.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a connection of the first session: %v", err)
	}
	b.pair(second)
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	b.refused("after Close")
	for n := range 20 {
		s := b.mustBegin()
		if n == 0 {
			c, err := b.dial("udp", "127.0.0.1:53")
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
		}
		b.pair(s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		b.refused("between")
	}
	if b.steps < 2 || b.steps > 4 {
		t.Errorf("22 sessions took %d steps", b.steps)
	}
	c, err := b.dial("udp", "127.0.0.1:53") // as resolvers do
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, "ask")
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a question without a session: %v", err)
	}
}

// More connections at once than anybody takes wait in the kernel, and the agent lives.
func TestAStormOfConnections(t *testing.T) {
	b := newBox(t)
	s := b.mustBegin()
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 8 {
		all.Go(func() {
			_ = b.within(func() error {
				for {
					select {
					case <-stop:
						return nil
					default:
					}
					d := net.Dialer{Timeout: 100 * time.Millisecond}
					c, err := d.Dial("tcp", "93.184.216.34:443")
					if err != nil {
						continue
					}
					_, _ = io.WriteString(c, "storm")
					_ = c.(*net.TCPConn).SetLinger(0)
					_ = c.Close()
				}
			})
		})
	}
	for range 1000 {
		c, err := s.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	close(stop)
	all.Wait()
	go func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	c := b.mustDial("93.184.216.34:80")
	_, _ = io.WriteString(c, "calm")
	_ = c.CloseWrite()
	if got, err := io.ReadAll(c); string(got) != "calm" || err != nil {
		t.Errorf("after it: %q, %v", got, err)
	}
}

// A program of the sandbox at the agent's abstract socket is no step.
func TestAProgramInsideIsNoStep(t *testing.T) {
	b := newBox(t)
	attack := exec.Command("nsenter", "--target", strconv.Itoa(b.pid), "--pid", "--net", os.Args[0])
	attack.Env = append(os.Environ(), roleEnv+"="+roleCrowd)
	var said bytes.Buffer
	attack.Stdout, attack.Stderr = &said, os.Stderr
	hold, err := attack.StdinPipe() // nsenter has a child, which ends with it
	if err == nil {
		err = attack.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		s := b.mustBegin()
		b.pair(s)
		_ = s.Close()
		for range 7 { // so that a step is needed again
			s := b.mustBegin()
			_ = s.Close()
		}
	}
	_ = hold.Close()
	_ = attack.Wait()
	if got := said.String(); strings.Contains(got, "taken") || !strings.Contains(got, "tried") {
		t.Errorf("its files were taken %d of %d times", strings.Count(got, "taken"), strings.Count(got, "tried"))
	}
}

func TestWhereThereIsAnotherInterface(t *testing.T) {
	b := newBox(t)
	for _, before := range []string{"the first step", "a step that was taken"} {
		err := b.within(func() error {
			return errors.Join(exec.Command("ip", "link", "add", "out0", "type", "veth", "peer", "name", "out1").Run(), up("out0"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.begin(); fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "out0") {
			t.Errorf("before %s: %v", before, err)
		}
		if err := b.within(func() error { return exec.Command("ip", "link", "del", "out0").Run() }); err != nil {
			t.Fatal(err)
		}
		_ = b.mustBegin().Close()
	}
	held := b.within(func() error {
		l, err := net.Listen("tcp", ":53")
		if err != nil {
			return err
		}
		defer l.Close()
		if _, err := b.begin(); fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "port 53") {
			t.Errorf("with the port taken: %v", err)
		}
		return nil
	})
	if held != nil {
		t.Fatal(held)
	}
}
