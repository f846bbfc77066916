// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native/boot"
	"sandpit.dev/runtime/native/cgroup"
	"sandpit.dev/runtime/native/furnish"
	"sandpit.dev/runtime/native/layer"
	"sandpit.dev/runtime/native/mount"
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
	undo.Add(func() { d.forget(i) })
	i.verb.Lock()
	defer i.verb.Unlock()
	blank := d.blanks.claim(spec.ID)
	layered := false
	undo.Add(func() {
		if layered { // and not one that was there before
			_ = d.layers.Remove(string(spec.ID))
		}
	})
	open := func() (*layer.Layer, error) {
		l, err := d.newLayer(ctx, spec)
		layered = err == nil
		d.checkpoint("create.layer")
		return l, err
	}
	err = i.up(ctx, spec, blank, open)
	if err != nil && blank != nil && ctx.Err() == nil {
		// What is wrong may be the blank: nobody has to know that there was one.
		d.log.Warn("a sandbox that had a prepared process 1 was not made, and is made without", "sandbox", spec.ID, "error", err)
		if layered {
			_ = d.layers.Remove(string(spec.ID))
			layered = false
		}
		err = i.up(ctx, spec, nil, open)
	}
	if err != nil {
		return nil, err
	}
	undo.Release()
	return i, nil
}

// newLayer makes an instance's disk: an empty one, or a copy of a snapshot's.
func (d *Driver) newLayer(ctx context.Context, spec runtime.Spec) (*layer.Layer, error) {
	limit := int64(spec.Limits.DiskMB) << 20
	if spec.From == "" {
		return d.layers.Create(string(spec.ID), limit)
	}
	return d.layers.CreateFrom(ctx, string(spec.ID), string(spec.From), limit)
}

// up begins a life on the layer that open gives, all or nothing, of the process 1 of b
// or of a new one. That starts while its disk and groups are made, and its inside is
// made while its runtime starts: each takes as long as the other.
func (i *Instance) up(ctx context.Context, spec runtime.Spec, b *blank, open func() (*layer.Layer, error)) (err error) {
	d := i.d
	defer d.blanks.begin()()
	var undo cleanup.Stack
	defer undo.Run()
	var held []io.Closer // needed only until the agent has them
	defer func() { d.closer.drop(held) }()
	hold := func(f *os.File, err error) (*os.File, error) {
		if err == nil {
			held = append(held, f)
		}
		return f, err
	}

	limits := d.enforceable(spec.Limits)
	var uids uidRange
	var born func() (*firstProcess, error)
	if b != nil {
		held = b.held
		uids, born = b.uids, func() (*firstProcess, error) { return b.first, nil }
	} else if uids, err = d.uids.take(); err != nil {
		return err
	} else {
		born = i.launch(limits, uids)
	}
	undo.Add(func() { d.uids.give(uids) })
	uids.net = nil // process 1 has it
	mine, err := i.mountDisk(ctx, spec, open, uids)
	if err == nil {
		undo.Add(func() { _ = mine.root.Close() })
		held = append(held, mine.log)
		d.checkpoint("create.disk")
	}
	var mounts volumes
	if err == nil && len(spec.Mounts) > 0 {
		mounts, err = i.openVolumes(spec.Mounts, mine.root, uids.ns)
		defer mounts.close(d.closer)
		undo.Add(func() { _ = i.remove(volumesFile) })
		d.checkpoint("create.volumes")
	}
	first, unborn := born()
	if unborn == nil {
		undo.Add(func() { first.end(i) })
		defer func() { _ = first.conn.Close() }()
	}
	switch {
	case err != nil:
		return err
	case unborn != nil:
		return unborn
	}
	dev := uids.dev
	uids.dev = nil
	held = append(held, dev)
	inside := i.furnish(first.pidfd, mine.root, dev, spec.Hostname, mounts.ready)
	undo.Add(func() { _ = i.remove(stateFile) })
	files, err := i.settle(first, uids, limits, b, hold) // meanwhile
	in, unfurnished := inside()                          // after an error too: it works on what is undone then
	if unfurnished == nil {
		held = append(held, in)
		defer func() { _ = in.View.Close() }() // not as late as the rest: it holds the overlay
	}
	switch {
	case err != nil:
		return err
	case unfurnished != nil:
		return unfurnished
	}
	d.checkpoint("create.inside")
	files.Log, files.View = mine.log, in.View
	if err := i.boot(ctx, first.conn, files); err != nil {
		return err
	}
	d.checkpoint("create.served")
	undo.Release()
	i.begin(&live{pid: first.pid, pidfd: first.pidfd, root: mine.root, uids: uids, group: first.group, image: spec.Root, state: first.state})
	return nil
}

// furnish has the inside made, and gives what waits for it.
func (i *Instance) furnish(pidfd, root, dev *os.File, hostname string, volumes []furnish.Volume) func() (*furnish.Inside, error) {
	var in *furnish.Inside
	var err error
	done := make(chan struct{})
	i.d.workers.start(func() {
		defer close(done)
		in, err = i.d.tape.Inside(pidfd, root, dev, hostname)
		if err == nil && len(volumes) > 0 {
			if err = furnish.Attach(pidfd, volumes); err != nil {
				_ = in.Close()
			}
		}
		if err != nil {
			err = fault.Wrap(fault.Unavailable, err, "the inside of sandbox %s cannot be made", i.id).
				WithRemedy("run `sandpit doctor` on the host")
		}
	})
	return func() (*furnish.Inside, error) {
		<-done
		return in, err
	}
}

// settle puts down what the next server needs to find this life again, makes the
// groups of the commands, and opens what the agent gets of them. A blank has all of
// that but its limits.
func (i *Instance) settle(first *firstProcess, uids uidRange, limits cgroup.Limits, b *blank, hold func(*os.File, error) (*os.File, error)) (boot.Files, error) {
	start, err := startTime(first.pid)
	if err == nil {
		first.state = state{PID: first.pid, Start: start, Boot: i.d.boot, UID: uids.base}
		err = first.state.write(i.d.instances, i.id)
	}
	if err != nil {
		return boot.Files{}, fault.Wrap(fault.Internal, err, "the state of sandbox %s cannot be written", i.id)
	}
	i.d.checkpoint("create.state")
	if b != nil {
		return b.files, first.group.Limit(limits)
	}
	if err := i.d.limit(first); err != nil {
		return boot.Files{}, err
	}
	i.d.checkpoint("create.groups")
	return i.bootFiles(first.group, hold)
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

// limit makes the groups of the commands. Where cgroup2 holds the limits, process 1
// is put beside them, out of their limits; with v1 it is born there.
func (d *Driver) limit(first *firstProcess) error {
	g := first.group
	if err := g.Prepare(); err != nil {
		return err
	}
	info := d.cgroups.Info()
	v2 := false
	for _, f := range []cgroup.Feature{cgroup.CPU, cgroup.Memory, cgroup.PIDs} {
		v2 = v2 || info.Version[f] == 2
	}
	if !v2 {
		return nil
	}
	procs, err := g.MakeAgent()
	if err != nil {
		return err
	}
	defer func() { _ = procs.Close() }()
	if _, err := procs.WriteString(strconv.Itoa(first.pid)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the agent cannot be moved to its cgroup")
	}
	return g.Activate()
}

// disk is a sandbox's root and the directory of its logs, both as the agent's
// user namespace sees them.
type disk struct {
	root *os.File // detached overlay
	log  *os.File
}

// mountDisk mounts the layer over the image. What the overlay needs, it holds.
func (i *Instance) mountDisk(ctx context.Context, spec runtime.Spec, open func() (*layer.Layer, error), uids uidRange) (disk, error) {
	var held []io.Closer // the overlay has its own by the time it is mounted
	defer func() { i.d.closer.drop(held) }()
	hold := func(f *os.File, err error) (*os.File, error) {
		if err == nil {
			held = append(held, f)
		}
		return f, err
	}
	l, err := open()
	if err != nil {
		return disk{}, err
	}
	defer func() { _ = l.Close() }()
	failed := func(err error) (disk, error) {
		return disk{}, fault.Wrap(fault.Unavailable, err, "the root of sandbox %s cannot be mounted", i.id).
			WithRemedy("run `sandpit doctor` on the host")
	}
	if err := l.FreshWork(); err != nil {
		return disk{}, err
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
		return disk{}, err
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
	root, err := overlay(limit, image, upper, work, uids.base)
	if err != nil {
		_ = log.Close()
		return failed(err)
	}
	return disk{root: root, log: log}, nil
}

// bootFiles opens what the agent gets beside its disk.
func (i *Instance) bootFiles(group *cgroup.Group, hold func(*os.File, error) (*os.File, error)) (f boot.Files, err error) {
	failed := func(err error) (boot.Files, error) {
		return boot.Files{}, fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s cannot be given its files", i.id)
	}
	commands, mount, err := group.CommandsDir()
	if err != nil {
		return failed(err)
	}
	f.Cgroup, _ = hold(commands, nil)
	i.d.closer.drop([]io.Closer{mount})
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
func (i *Instance) boot(ctx context.Context, conn *net.UnixConn, f boot.Files) error {
	deadline := time.Now().Add(bootTimeout)
	if t, ok := ctx.Deadline(); ok && t.Before(deadline) {
		deadline = t
	}
	_ = conn.SetDeadline(deadline)
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	err := boot.Send(conn, boot.Message{UserFilter: i.d.userFilter, RootFilter: i.d.rootFilter, AgentCaps: agentCaps, RootCaps: rootCaps}, f)
	if err == nil {
		err = boot.Await(conn)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s did not start", i.id)
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
