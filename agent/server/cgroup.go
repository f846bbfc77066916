// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Cgroups makes groups of cgroup v2 directories below dir, which is open and
// stays the caller's. They need no controllers. A directory is made anew, named
// after its first command, or is one that was emptied; a few of those are left.
func Cgroups(dir *os.File) Groups { return &cgroups{dir: dir} }

// maxSpare is how many emptied directories are kept for the next commands. To make
// and to remove one takes the kernel longer than to fork.
const maxSpare = 2

type cgroups struct {
	dir *os.File

	mu    sync.Mutex
	spare []*cgroup // without members, and nobody else has them
}

func (g *cgroups) New(id string) (Group, error) {
	if c := g.reuse(); c != nil {
		return c, nil
	}
	at := int(g.dir.Fd())
	if err := unix.Mkdirat(at, id, 0o755); err != nil {
		return nil, &os.PathError{Op: "mkdir", Path: id, Err: err}
	}
	fd, err := unix.Openat(at, id, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = unix.Unlinkat(at, id, unix.AT_REMOVEDIR)
		return nil, &os.PathError{Op: "open", Path: id, Err: err}
	}
	return &cgroup{all: g, name: id, fd: fd, events: -1}, nil
}

func (g *cgroups) reuse() *cgroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.spare)
	if n == 0 {
		return nil
	}
	c := g.spare[n-1]
	g.spare = g.spare[:n-1]
	return c
}

// keep takes a group without members, if there is room.
func (g *cgroups) keep(c *cgroup) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.spare) == maxSpare {
		return false
	}
	g.spare = append(g.spare, c)
	return true
}

// cgroup is used by its process alone, which orders the calls: Remove comes last.
type cgroup struct {
	all  *cgroups
	name string
	fd   int

	// killed: the kernel compares how often a group was killed before and after a
	// fork, and takes the parent's group for the one before. So whatever is cloned
	// into a group that was ever killed dies at once (seen with Linux 6.18).
	killed bool

	mu     sync.Mutex
	events int // cgroup.events; below zero: not opened yet
}

func (c *cgroup) FD() int { return c.fd }

func (c *cgroup) Kill() error {
	c.killed = true
	return c.write("cgroup.kill", "1")
}

func (c *cgroup) write(file, text string) error {
	fd, err := unix.Openat(c.fd, file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: file, Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		return &os.PathError{Op: "write", Path: file, Err: err}
	}
	return nil
}

// Empty sleeps on the kernel's own notice. cgroup.events signals a change as
// an exceptional condition, which Go's poller does not ask for; an epoll set of
// our own does, and is itself readable to Go's poller.
func (c *cgroup) Empty(ctx context.Context) error {
	events, err := c.notices()
	if err != nil {
		return err
	}
	if empty, err := unpopulated(events); err != nil || empty {
		return err
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	_ = unix.SetNonblock(ep, true)
	set := os.NewFile(uintptr(ep), "cgroup.events")
	defer set.Close()
	ev := unix.EpollEvent{Events: unix.EPOLLPRI | unix.EPOLLERR, Fd: int32(events)}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, events, &ev); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = set.Close() })
	defer stop()
	raw, err := set.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		var got [1]unix.EpollEvent
		_, _ = unix.EpollWait(int(fd), got[:], 0) // takes the notice, so that the next one wakes us
		empty, err := unpopulated(events)
		failed = err
		return empty || err != nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed != nil {
		return failed
	}
	return err
}

// notices opens cgroup.events, once.
func (c *cgroup) notices() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events < 0 {
		fd, err := unix.Openat(c.fd, "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, &os.PathError{Op: "open", Path: "cgroup.events", Err: err}
		}
		c.events = fd
	}
	return c.events, nil
}

func unpopulated(events int) (bool, error) {
	var b [128]byte
	n, err := unix.Pread(events, b[:], 0)
	if err != nil {
		return false, os.NewSyscallError("pread", err)
	}
	return bytes.Contains(b[:n], []byte("populated 0")), nil
}

// Remove keeps the directory for another command, if nothing is in it. Then nothing
// gets in: only a member could fork into it, and only the agent can move a process.
func (c *cgroup) Remove() error {
	if events, err := c.notices(); err == nil {
		switch empty, err := unpopulated(events); {
		case err == nil && !empty:
			return &os.PathError{Op: "rmdir", Path: c.name, Err: unix.EBUSY}
		case err == nil && !c.killed && c.all.keep(c):
			return nil
		}
	}
	if err := unix.Unlinkat(int(c.all.dir.Fd()), c.name, unix.AT_REMOVEDIR); err != nil {
		return &os.PathError{Op: "rmdir", Path: c.name, Err: err}
	}
	_ = unix.Close(c.fd)
	if c.events >= 0 {
		_ = unix.Close(c.events)
	}
	return nil
}

// members lists the pids in the cgroup that fd is open on.
func members(fd int) ([]int, error) {
	f, err := unix.Openat(fd, "cgroup.procs", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "cgroup.procs", Err: err}
	}
	file := os.NewFile(uintptr(f), "cgroup.procs")
	defer file.Close()
	var all bytes.Buffer
	if _, err := all.ReadFrom(file); err != nil {
		return nil, err
	}
	var pids []int
	for line := range bytes.Lines(all.Bytes()) {
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
