// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Cgroups makes groups of cgroup v2 directories below dir, which is open and
// stays the caller's. They need no controllers.
func Cgroups(dir *os.File) Groups { return cgroups{dir: dir} }

type cgroups struct{ dir *os.File }

func (g cgroups) New(id string) (Group, error) {
	at := int(g.dir.Fd())
	if err := unix.Mkdirat(at, id, 0o755); err != nil {
		return nil, &os.PathError{Op: "mkdir", Path: id, Err: err}
	}
	fd, err := unix.Openat(at, id, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = unix.Unlinkat(at, id, unix.AT_REMOVEDIR)
		return nil, &os.PathError{Op: "open", Path: id, Err: err}
	}
	return &cgroup{parent: at, name: id, fd: fd}, nil
}

// cgroup is used by its process alone, which orders the calls: Remove comes last.
type cgroup struct {
	parent, fd int
	name       string
}

func (c *cgroup) FD() int { return c.fd }

func (c *cgroup) Kill() error { return c.write("cgroup.kill", "1") }

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
	events, err := unix.Openat(c.fd, "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "cgroup.events", Err: err}
	}
	defer unix.Close(events)
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

func unpopulated(events int) (bool, error) {
	var b [128]byte
	n, err := unix.Pread(events, b[:], 0)
	if err != nil {
		return false, os.NewSyscallError("pread", err)
	}
	return bytes.Contains(b[:n], []byte("populated 0")), nil
}

func (c *cgroup) Remove() error {
	if err := unix.Unlinkat(c.parent, c.name, unix.AT_REMOVEDIR); err != nil {
		return &os.PathError{Op: "rmdir", Path: c.name, Err: err}
	}
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
		c.fd = -1
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
