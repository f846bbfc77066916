// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native/boot"
	"sandpit.dev/runtime/native/cgroup"
	"sandpit.dev/runtime/native/layer"
	"sandpit.dev/runtime/native/mount"
	"sandpit.dev/runtime/native/spawn"
	"sandpit.dev/sandbox"
)

// bootTimeout bounds the agent's start; it takes two milliseconds.
const bootTimeout = 20 * time.Second

// busyTimeout bounds the wait for the mounts of a layer's last life to go.
const busyTimeout = 15 * time.Second

// Create makes an instance and starts it, all or nothing.
func (d *Driver) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var undo cleanup.Stack
	defer undo.Run()

	i, err := d.register(spec.ID)
	if err != nil {
		return nil, err
	}
	undo.Add(func() { _ = d.forget(i) })
	l, err := d.layers.Create(string(spec.ID), int64(spec.Limits.DiskMB)<<20)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	undo.Add(func() { _ = d.layers.Remove(string(spec.ID)) })
	if err := i.up(ctx, spec, l); err != nil {
		return nil, err
	}
	undo.Release()
	return i, nil
}

// up begins a life on the layer, all or nothing.
func (i *Instance) up(ctx context.Context, spec runtime.Spec, l *layer.Layer) (err error) {
	d := i.d
	var undo cleanup.Stack
	defer undo.Run()
	var held []*os.File // needed only until the agent has them
	defer func() {
		for _, f := range held {
			_ = f.Close()
		}
	}()
	hold := func(f *os.File, err error) (*os.File, error) {
		if err == nil {
			held = append(held, f)
		}
		return f, err
	}

	uids, err := d.uids.take()
	if err != nil {
		return err
	}
	undo.Add(func() { d.uids.give(uids) })

	// The disk is mounted while the process starts: neither needs the other yet.
	mounted := make(chan disk, 1)
	go func() { mounted <- i.mountDisk(ctx, spec, l, uids) }()
	awaitDisk := sync.OnceValue(func() disk { return <-mounted })
	undo.Add(func() { awaitDisk().close() })

	group, err := d.cgroups.Create(string(i.id), d.enforceable(spec.Limits), int(uids.base))
	if err != nil {
		return err
	}
	undo.Add(func() { _ = group.Remove(context.WithoutCancel(ctx)) })
	cgroupDir, err := hold(group.Dir())
	if err != nil {
		return err
	}

	listener, err := hold(i.listen())
	if err != nil {
		return err
	}
	undo.Add(func() { _ = i.remove(socketName) })

	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer func() { _ = ours.Close() }()
	held = append(held, theirs)

	pid, err := d.workers.spawn(spawn.Process{
		Program:  d.agent,
		Args:     []string{agentName},
		Env:      agentEnv,
		Files:    []*os.File{d.null, d.null, d.null, listener, theirs},
		UserNS:   uids.ns,
		Cgroup:   cgroupDir,
		KeepCaps: agentCaps,
	})
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the sandbox's first process cannot be started").
			WithRemedy("run `sandpit doctor` on the host")
	}
	pidfd, err := openProcess(pid)
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return err
	}
	undo.Add(func() {
		_ = kill(pidfd)
		_, _ = waitProcess(pidfd)
		_ = pidfd.Close()
	})

	undo.Add(func() { _ = i.remove(stateFile) })
	start, err := startTime(pid)
	if err == nil {
		err = state{PID: pid, Start: start, Boot: d.boot, UID: uids.base}.write(d.instances, i.id)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the state of sandbox %s cannot be written", i.id)
	}
	if err := d.settle(group, pid); err != nil {
		return err
	}
	files, err := i.bootFiles(group, hold)
	if err != nil {
		return err
	}
	mine := awaitDisk()
	if mine.err != nil {
		return mine.err
	}
	files.Root, files.Log = mine.root, mine.log
	if err := i.boot(ctx, spec, ours, files); err != nil {
		return err
	}
	undo.Release()
	_ = mine.log.Close()
	i.begin(&live{pid: pid, pidfd: pidfd, root: mine.root, uids: uids, group: group, image: spec.Root})
	return nil
}

// enforceable leaves out the limits that this host has no controller for.
// Probe says which those are.
func (d *Driver) enforceable(l sandbox.Limits) cgroup.Limits {
	info := d.cgroups.Info()
	var out cgroup.Limits
	if info.Err(cgroup.CPU) == nil {
		out.CPU = l.CPU
	}
	if info.Err(cgroup.Memory) == nil {
		out.MemoryBytes = int64(l.MemoryMB) << 20
	}
	if info.Err(cgroup.PIDs) == nil {
		out.PIDs = l.Pids
	}
	return out
}

// settle puts process 1 beside its commands, out of their limits, where cgroup2
// holds the limits. With v1 it is born there.
func (d *Driver) settle(g *cgroup.Group, pid int) error {
	info := d.cgroups.Info()
	v2 := false
	for _, f := range []cgroup.Feature{cgroup.CPU, cgroup.Memory, cgroup.PIDs} {
		v2 = v2 || info.Version[f] == 2
	}
	if !v2 {
		return nil
	}
	procs, err := g.AgentFile()
	if err != nil {
		return err
	}
	defer func() { _ = procs.Close() }()
	if _, err := procs.WriteString(strconv.Itoa(pid)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the agent cannot be moved to its cgroup")
	}
	return g.Activate()
}

// disk is a sandbox's root and the directory of its logs, both as the agent's
// user namespace sees them.
type disk struct {
	root *os.File // detached overlay
	log  *os.File
	err  error
}

func (d disk) close() {
	if d.err == nil {
		_ = d.root.Close()
		_ = d.log.Close()
	}
}

// mountDisk mounts the layer over the image. What the overlay needs, it holds.
func (i *Instance) mountDisk(ctx context.Context, spec runtime.Spec, l *layer.Layer, uids uidRange) disk {
	var held cleanup.Stack
	defer held.Run()
	hold := func(f *os.File, err error) (*os.File, error) {
		if err == nil {
			held.Add(func() { _ = f.Close() })
		}
		return f, err
	}
	failed := func(err error) disk {
		return disk{err: fault.Wrap(fault.Unavailable, err, "the root of sandbox %s cannot be mounted", i.id).
			WithRemedy("run `sandpit doctor` on the host")}
	}
	if err := l.FreshWork(); err != nil {
		return disk{err: err}
	}
	image, err := hold(mount.CloneAt(unix.AT_FDCWD, spec.Root))
	if err != nil {
		return failed(err)
	}
	if err := mount.IDMap(image, uids.ns); err != nil {
		return failed(err)
	}
	writable, err := hold(mount.CloneAt(l.Fd(), ""))
	if err != nil {
		return failed(err)
	}
	if err := mount.IDMap(writable, uids.ns); err != nil {
		return failed(err)
	}
	upper, err := hold(openDir(int(writable.Fd()), "upper"))
	if err != nil {
		return failed(err)
	}
	work, err := hold(openDir(int(writable.Fd()), "work"))
	if err != nil {
		return failed(err)
	}
	logs, err := hold(i.d.layers.Logs(string(i.id)))
	if err != nil {
		return disk{err: err}
	}
	mapped, err := hold(mount.Clone(logs, ""))
	if err != nil {
		return failed(err)
	}
	if err := mount.IDMap(mapped, uids.ns); err != nil {
		return failed(err)
	}
	log, err := openDir(int(mapped.Fd()), ".")
	if err != nil {
		return failed(err)
	}
	// A layer that stays busy is another server's, or a bug.
	limit, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	root, err := i.d.workers.overlay(limit, image, upper, work, uids.base)
	if err != nil {
		_ = log.Close()
		return failed(err)
	}
	return disk{root: root, log: log}
}

// bootFiles opens what the agent gets beside its disk.
func (i *Instance) bootFiles(group *cgroup.Group, hold func(*os.File, error) (*os.File, error)) (f boot.Files, err error) {
	failed := func(err error) (boot.Files, error) {
		return boot.Files{}, fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s cannot be given its files", i.id)
	}
	if f.Dev, err = hold(makeDev()); err != nil {
		return failed(err)
	}
	if f.Cgroup, err = hold(group.CommandsDir()); err != nil {
		return failed(err)
	}
	// What this host does not count is told by no file; nothing is said to have
	// ended by it then.
	f.OOM, f.Pids = i.d.null, i.d.null
	info := i.d.cgroups.Info()
	if info.Err(cgroup.Memory) == nil {
		if f.OOM, err = hold(group.OOMFile()); err != nil {
			return failed(err)
		}
	}
	if info.Err(cgroup.PIDs) == nil {
		if f.Pids, err = hold(group.PIDsFile()); err != nil {
			return failed(err)
		}
	}
	if f.Joins, err = group.JoinFiles(); err != nil {
		return failed(err)
	}
	for _, join := range f.Joins {
		_, _ = hold(join, nil)
	}
	return f, nil
}

// boot hands the agent what it needs and waits until it serves.
func (i *Instance) boot(ctx context.Context, spec runtime.Spec, conn *net.UnixConn, f boot.Files) error {
	failed := func(err error) error {
		return fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s did not start", i.id)
	}
	deadline := time.Now().Add(bootTimeout)
	if t, ok := ctx.Deadline(); ok && t.Before(deadline) {
		deadline = t
	}
	_ = conn.SetDeadline(deadline)
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	m := boot.Message{
		Hostname:   spec.Hostname,
		UserFilter: i.d.userFilter, RootFilter: i.d.rootFilter,
		RootCaps: rootCaps,
	}
	if err := boot.Send(conn, m, f); err != nil {
		return failed(err)
	}
	reply, err := boot.Await(conn)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return failed(err)
	case reply.Error != "":
		return failed(errors.New(reply.Error))
	}
	return nil
}

// listen makes the agent's socket. It is bound through the directory's
// descriptor, since a socket's path has at most 107 bytes.
func (i *Instance) listen() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fault.Wrap(fault.Exhausted, err, "the host has no socket left")
	}
	f := os.NewFile(uintptr(fd), socketName)
	if err := i.remove(socketName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = f.Close()
		return nil, err
	}
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: i.d.socketPath(i.id)})
	if err == nil {
		err = unix.Listen(fd, 256)
	}
	if err != nil {
		_ = f.Close()
		return nil, fault.Wrap(fault.Internal, err, "the agent's socket of sandbox %s cannot be made", i.id)
	}
	return f, nil
}

func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Exhausted, err, "the host has no socket left")
	}
	a := os.NewFile(uintptr(p[0]), "boot")
	defer func() { _ = a.Close() }()
	conn, err := net.FileConn(a)
	if err != nil {
		_ = unix.Close(p[1])
		return nil, nil, fault.Wrap(fault.Internal, err, "the boot socket cannot be used")
	}
	return conn.(*net.UnixConn), os.NewFile(uintptr(p[1]), "boot"), nil
}

func openDir(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func openProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "process %s cannot be watched", strconv.Itoa(pid))
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}
