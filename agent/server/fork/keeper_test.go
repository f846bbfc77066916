// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package fork_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/fork"
)

// keptCommand is a shell whose output is r.
func keptCommand(t testing.TB, shell string) (c *fork.Command, r *os.File, done func()) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	c = &fork.Command{
		Program: "/bin/sh", Argv: []string{"sh", "-c", shell}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: int(dir.Fd()),
		Files: [3]int{int(null.Fd()), int(w.Fd()), int(null.Fd())}, Group: -1,
	}
	return c, r, func() { _ = w.Close(); _ = null.Close(); _ = dir.Close() }
}

func await(t testing.TB, fd int) {
	t.Helper()
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, 30_000); n > 0 || err != nil && err != unix.EINTR {
			return
		} else if n == 0 && err == nil {
			t.Fatal("nothing came of it in 30 s")
		}
	}
}

func TestAKeptCommandIsAsAnother(t *testing.T) {
	for shell, want := range map[string]unix.WaitStatus{"echo out; exit 7": 7 << 8, "echo out; kill -9 $$": 9, "echo out": 0} {
		c, r, done := keptCommand(t, shell)
		pid, pidfd, k, err := c.StartKept()
		done()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, _ := r.Read(b)
		if string(b[:n]) != "out\n" {
			t.Errorf("%s: %q", shell, b[:n])
		}
		await(t, pidfd)
		await(t, k.PIDFD)
		if status, ok := k.Status(); !ok || status != want || !k.Over() || pid == k.PID {
			t.Errorf("%s: %v %v, over %v", shell, status, ok, k.Over())
		}
		_ = unix.Close(pidfd)
		k.Free()
		_ = r.Close()
	}
}

// What it leaves behind has the keeper for its parent, which outlives it.
func TestAKeeperOutlivesTheCommand(t *testing.T) {
	c, r, done := keptCommand(t, `grep -E "^Sig(Blk|Ign)" /proc/self/status; (setsid sh -c 'sleep 0.2; cut -d" " -f4 /proc/$$/stat' &) ; exit 3`)
	_, pidfd, k, err := c.StartKept()
	done()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	await(t, pidfd)
	if k.Over() {
		t.Error("it does not wait for what was left behind")
	}
	var out strings.Builder
	for b := make([]byte, 100); ; {
		n, err := r.Read(b)
		out.Write(b[:n])
		if err != nil {
			break
		}
	}
	await(t, k.PIDFD)
	if status, ok := k.Status(); !ok || status != 3<<8 || !k.Over() {
		t.Errorf("%v %v", status, ok)
	}
	if want := fmt.Sprintf("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n%d\n", k.PID); out.String() != want {
		t.Errorf("inside: %s", out.String())
	}
	_ = unix.Close(pidfd)
	k.Free()
}

func TestAKeptCommandThatCannotBeRun(t *testing.T) {
	c, r, done := keptCommand(t, "")
	defer done()
	defer r.Close()
	c.Program = "/no/such/program"
	if _, _, k, err := c.StartKept(); err != unix.ENOENT || k != nil {
		t.Errorf("got %v", err)
	}
	c.Program, c.Dir = "/bin/sh", c.Files[0]
	if _, _, k, err := c.StartKept(); err != unix.ENOTDIR || k != nil {
		t.Errorf("got %v", err)
	}
}

// Keepers share our memory while Go's collector and stacks move in it.
func TestKeepersWhileTheCollectorRuns(t *testing.T) {
	before := descriptors(t)
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		var keep [][]byte
		for {
			select {
			case <-stop:
				return
			default:
			}
			keep = append(keep, make([]byte, 64<<10))
			if len(keep) > 200 {
				keep = nil
				runtime.GC()
			}
		}
	})
	var commands sync.WaitGroup
	for range 4 {
		commands.Go(func() {
			for range 50 {
				c, r, done := keptCommand(t, "(true &); exit 5")
				_, pidfd, k, err := c.StartKept()
				done()
				_ = r.Close()
				if err != nil {
					t.Error(err)
					return
				}
				await(t, k.PIDFD)
				if status, ok := k.Status(); !ok || status != 5<<8 || !k.Over() {
					t.Errorf("%v %v", status, ok)
				}
				_ = unix.Close(pidfd)
				k.Free()
			}
		})
	}
	commands.Wait()
	close(stop)
	all.Wait()
	if now := descriptors(t); now != before {
		t.Errorf("%d descriptors are open, and %d were before", now, before)
	}
}

func TestAKeeperThatIsKilledIsNotOver(t *testing.T) {
	c, r, done := keptCommand(t, "echo $$; exec sleep 1000")
	pid, pidfd, k, err := c.StartKept()
	done()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, _ = r.Read(make([]byte, 100))
	k.Kill()
	if _, ok := k.Status(); ok || k.Over() {
		t.Error("it says that its command has ended")
	}
	if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil {
		t.Errorf("its command %d: %v", pid, err)
	}
	_ = unix.Close(pidfd)
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func BenchmarkStart(b *testing.B) {
	for name, start := range map[string]func(*fork.Command) (int, func()){
		"Own": func(c *fork.Command) (int, func()) {
			pid, pidfd, err := c.Start()
			if err != nil {
				b.Fatal(err)
			}
			return pidfd, func() { _, _ = unix.Wait4(pid, nil, 0, nil); _ = unix.Close(pidfd) }
		},
		"Kept": func(c *fork.Command) (int, func()) {
			_, pidfd, k, err := c.StartKept()
			if err != nil {
				b.Fatal(err)
			}
			return k.PIDFD, func() { _ = unix.Close(pidfd); k.Free() }
		},
	} {
		b.Run(name, func(b *testing.B) {
			c, r, done := keptCommand(b, "")
			defer done()
			defer r.Close()
			c.Program, c.Argv = "/bin/true", []string{"true"}
			for b.Loop() {
				fd, free := start(c)
				await(b, fd)
				free()
			}
		})
	}
}
