// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package traffic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/traffic"
	"sandpit.dev/internal/skiptest"
)

// What the test's own program is when it is started again.
const (
	roleEnv    = "SANDPIT_TEST_TRAFFIC"
	roleAgent  = "agent" // an agent, at a unix socket
	roleStep   = "step"  // what makes sockets for it
	roleCrowd  = "crowd" // a program of the sandbox at the agent's abstract socket
	socketPath = "SANDPIT_TEST_SOCKET"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleEnv) {
	case roleAgent:
		err = serve(os.Getenv(socketPath))
	case roleStep:
		err = traffic.Step(os.Args[1], netip.AddrPort{})
	case roleCrowd:
		err = crowd()
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve is an agent whose connections need no key.
func serve(path string) error {
	endWithInput()
	if err := up("lo"); err != nil {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	a := traffic.NewAgent()
	for {
		nc, err := l.Accept()
		if err != nil {
			return err
		}
		go func() { _ = a.Carry(context.Background(), nc) }()
	}
}

// crowd gives files to whoever waits at an abstract socket of the namespace, and takes what it gets.
func crowd() error {
	endWithInput()
	for {
		list, err := os.ReadFile("/proc/net/unix")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(list)) {
			f := strings.Fields(line)
			if len(f) < 8 || !strings.HasPrefix(f[7], "@") {
				continue
			}
			c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: f[7], Net: "unix"})
			if err != nil {
				continue
			}
			_, _, _ = c.WriteMsgUnix([]byte("{}"), unix.UnixRights(0, 1), nil)
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			var b [1]byte
			if n, _ := c.Read(b[:]); n > 0 {
				fmt.Println("taken")
			}
			_ = c.Close()
			fmt.Println("tried")
		}
		time.Sleep(time.Millisecond)
	}
}

// endWithInput has this process end with whoever started it, however that ends.
func endWithInput() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
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

// box is an agent in namespaces of its own for network and processes, as in a container.
type box struct {
	t      *testing.T
	netns  *os.File
	socket string
	steps  int
	pid    int
}

func newBox(t *testing.T) *box {
	t.Helper()
	skiptest.WithoutRoot(t, "it makes network namespaces")
	b := &box{t: t, socket: filepath.Join(t.TempDir(), "agent")}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+roleAgent, socketPath+"="+b.socket)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNET}
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	b.pid = cmd.Process.Pid
	said := make([]byte, 8)
	if n, err := out.Read(said); err != nil {
		t.Fatalf("the agent said %q, %v", said[:n], err)
	}
	if b.netns, err = os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/net"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.netns.Close() })
	return b
}

// within calls f on a thread that is in the box's network.
func (b *box) within(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := unix.Setns(int(b.netns.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// dial connects as a program inside does.
func (b *box) dial(network, to string) (c net.Conn, err error) {
	err = b.within(func() error {
		c, err = net.DialTimeout(network, to, 10*time.Second)
		return err
	})
	return c, err
}

func (b *box) mustDial(to string) *net.TCPConn {
	b.t.Helper()
	c, err := b.dial("tcp", to)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// step runs one beside the agent.
func (b *box) step(_ context.Context, name string) error {
	b.steps++
	cmd := exec.Command(os.Args[0], name)
	cmd.Env = append(os.Environ(), roleEnv+"="+roleStep)
	var out []byte
	err := b.within(func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (b *box) begin() (*traffic.Server, error) {
	nc, err := net.Dial("unix", b.socket)
	if err != nil {
		return nil, err
	}
	return traffic.Begin(b.t.Context(), nc, b.step)
}

func (b *box) mustBegin() *traffic.Server {
	b.t.Helper()
	s, err := b.begin()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = s.Close() })
	return s
}

// pair is a connection from inside, and the server's end of it.
func (b *box) pair(s *traffic.Server) (inside *net.TCPConn, outside *traffic.Conn) {
	b.t.Helper()
	type accepted struct {
		c   *traffic.Conn
		err error
	}
	got := make(chan accepted, 1)
	go func() {
		c, err := s.Accept()
		got <- accepted{c, err}
	}()
	inside = b.mustDial("93.184.216.34:443")
	a := <-got
	if a.err != nil {
		b.t.Fatal(a.err)
	}
	b.t.Cleanup(func() { _ = a.c.Close() })
	return inside, a.c
}

// refused dials where nobody takes the traffic.
func (b *box) refused(when string) {
	b.t.Helper()
	if c, err := b.dial("tcp", "93.184.216.34:443"); !errors.Is(err, unix.ECONNREFUSED) {
		b.t.Errorf("%s: %v, %v", when, c, err)
	}
}

// both runs two functions at once.
func both(f, g func()) {
	var w sync.WaitGroup
	w.Go(f)
	g()
	w.Wait()
}
