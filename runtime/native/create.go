// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native/furnish"
	"sandpit.dev/sandbox"
)

// busyTimeout bounds the wait for the mounts of a layer's last life to go.
const busyTimeout = 15 * time.Second

// Create makes an instance and starts it, all or nothing.
func (d *Driver) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	disk := func() (*layer.Layer, error) { return d.newLayer(ctx, spec) }
	if spec.From == "" {
		return d.create(ctx, spec, disk)
	}
	return d.createOf(ctx, spec, disk)
}

// createOf is create with a disk that is a copy, which it begins to make at once.
func (d *Driver) createOf(ctx context.Context, spec runtime.Spec, disk func() (*layer.Layer, error)) (runtime.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !sandbox.ValidID(string(spec.ID)) {
		return nil, invalidID(spec.ID)
	}
	e := beginEarly(disk)
	i, err := d.create(ctx, spec, e.open)
	defer d.layers.CommitCopies()
	if e.drop() {
		d.removeLayer(spec.ID)
	}
	return i, err
}

// create is Create with the disk that the function disk makes.
func (d *Driver) create(ctx context.Context, spec runtime.Spec, disk func() (*layer.Layer, error)) (runtime.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.layers.Room(); err != nil {
		return nil, err
	}
	defer d.calm.begin()()
	var undo cleanup.Stack
	defer undo.Run()

	i := &Instance{d: d, id: spec.ID}
	if err := d.register(i); err != nil {
		return nil, err
	}
	undo.Add(func() { d.forget(i) })
	i.verb.Lock()
	defer i.verb.Unlock()
	layered := false
	undo.Add(func() {
		if layered { // and not one that was there before
			d.removeLayer(spec.ID)
		}
	})
	open := func() (*layer.Layer, error) {
		l, err := disk()
		layered = err == nil
		d.checkpoint("create.layer")
		return l, err
	}
	if err := i.up(ctx, spec, nil, open); err != nil {
		return nil, err
	}
	undo.Release()
	return i, nil
}

// removeLayer removes the disk of a create that failed. What cannot be removed now has no
// record, by which it is found and removed later.
func (d *Driver) removeLayer(id sandbox.ID) {
	if err := d.layers.Remove(string(id)); err != nil {
		d.log.Error("the disk of a sandbox that was not made is left behind; it is tried again", "sandbox", id, "error", err)
	}
}

// newLayer makes an instance's disk: an empty one, or a copy of a snapshot's.
func (d *Driver) newLayer(ctx context.Context, spec runtime.Spec) (*layer.Layer, error) {
	limit := int64(spec.Limits.DiskMB) << 20
	if spec.From == "" {
		return d.layers.Create(string(spec.ID), limit)
	}
	return d.layers.CreateFrom(ctx, string(spec.ID), string(spec.From), limit)
}

// up begins a life on the layer that open gives, when it is its turn; see rise.
func (i *Instance) up(ctx context.Context, spec runtime.Spec, b *blank, open func() (*layer.Layer, error)) error {
	defer i.d.calm.begin()()
	leave, err := i.d.queue.enter(ctx)
	if err != nil {
		if b != nil {
			b.end(i)
		}
		return err
	}
	if err := i.rise(ctx, spec, b, open, leave); err != nil {
		leave()
		return err
	}
	return nil
}

// rise begins a life on the layer that open gives, all or nothing, of the process 1 of b
// or of a new one. That comes to its program and gets its runtime up while its ground is
// made here: each takes as long as the other. The agent has all it needs when rise gives no
// error, and serves a millisecond later, or not; served is called then. See [serving].
func (i *Instance) rise(ctx context.Context, spec runtime.Spec, b *blank, open func() (*layer.Layer, error), served func()) (err error) {
	d := i.d
	var undo cleanup.Stack
	defer undo.Run()
	var held []io.Closer // needed only until the agent has them
	defer func() { d.closer.drop(held) }()

	limits := d.enforceable(spec.Limits)
	var uids uidRange
	var group *cgroup.Group
	var launched *launch
	var first *firstProcess // nil: it is on its way
	if b != nil {
		held = b.held
		uids, group, first = b.uids, b.first.group, b.first
	} else if uids, err = d.uids.take(); err != nil {
		return err
	}
	undo.Add(func() { d.uids.give(uids) })
	if b == nil {
		if group, err = d.cgroups.Create(string(i.id), limits, int(uids.Base)); err != nil {
			return err
		}
		d.checkpoint("create.group")
		if spec.From != "" { // its copy is being made already, and takes longer
			first, err = i.start(ctx, group, group.Dir, nil, uids)
		} else {
			launched, err = i.launch(ctx, group, group.Dir, nil, uids)
		}
		if err != nil {
			_ = group.Remove(context.Background())
			return err
		}
	}
	undo.Add(func() {
		if first == nil && launched != nil { // a panic: nobody came as far as to end it
			if f, err := launched.born(); err == nil {
				f.end(i)
			}
		}
	})
	g, unlaid := i.lay(ctx, spec, open, uids, group, b)
	defer func() { // on every way out, and before what is undone
		held = append(held, g.held...)
		g.volumes.close(d.closer)
	}()
	undo.Add(func() { g.undo(i) })

	if first == nil {
		if first, err = launched.born(); err != nil {
			launched = nil
			_ = group.Remove(context.Background())
			return err
		}
	}
	undo.Add(func() { first.end(i) })
	undo.Add(func() { _ = i.remove(host.StateFile) })
	if unlaid != nil {
		return unlaid
	}
	if err := i.settle(first, uids); err != nil {
		return err
	}
	if b != nil {
		if err := first.group.SetLimits(limits); err != nil {
			return err
		}
	}
	inside, err := i.furnish(first, g, uids.kit, spec.Hostname)
	if err != nil {
		return err
	}
	held = append(held, inside)
	defer func() { _ = inside.View.Close() }() // not as late as the rest: it holds the overlay
	d.checkpoint("create.inside")
	if err := first.arrive(); err != nil {
		return err
	}
	files, err := g.bootFiles(i, first, b)
	if err != nil {
		return err
	}
	files.View = inside.View
	if err := i.tell(first.conn, files, spec.Limits); err != nil {
		return err
	}
	d.checkpoint("create.told")
	undo.Release()
	held = append(held, uids.kit)
	uids.kit = nil
	l := &live{pid: first.pid, pidfd: first.pidfd, root: g.disk.root, uids: uids, group: first.group, agent: first.agent, image: spec.Image.Root, state: first.state}
	l.serving = &serving{conn: first.conn, heard: make(chan struct{}), then: served}
	if call, err := i.connect(ctx); err == nil { // the agent will find it waiting
		l.line.keep(call)
	}
	i.begin(l)
	return nil
}

// furnish makes the inside of first on its ground.
func (i *Instance) furnish(first *firstProcess, g *ground, kit *furnish.Kit, hostname string) (*furnish.Inside, error) {
	in, err := i.d.tape.Inside(first.pidfd, g.disk.root, kit, hostname)
	if err == nil && len(g.volumes.ready) > 0 {
		if err = furnish.Attach(first.pidfd, g.volumes.ready); err != nil {
			_ = in.Close()
		}
	}
	switch {
	case fault.Is(err, fault.Conflict):
		return nil, err // of what the disk holds, and not of the host
	case err != nil:
		return nil, fault.Wrap(fault.Unavailable, err, "the inside of sandbox %s cannot be made", i.id).
			WithRemedy("run `sandpit doctor` on the host")
	}
	return in, nil
}

// settle puts down what the next server needs to find this life again.
func (i *Instance) settle(first *firstProcess, uids uidRange) error {
	s, err := host.StateOf(first.pid, uids.Base, i.d.boot)
	if err == nil {
		first.state = s
		err = s.Write(i.d.instances.Root, string(i.id))
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the state of sandbox %s cannot be written", i.id)
	}
	i.d.checkpoint("create.state")
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

// unified tells whether cgroup2 holds any of the limits.
func (d *Driver) unified() bool {
	info := d.cgroups.Info()
	for _, f := range []cgroup.Feature{cgroup.CPU, cgroup.Memory, cgroup.PIDs} {
		if info.Version[f] == 2 {
			return true
		}
	}
	return false
}

// setApart puts process 1 beside the groups of the commands, out of their limits, which
// cgroup2 needs before it has any; with v1 it is born there.
func (d *Driver) setApart(first *firstProcess) error {
	procs, err := first.group.MakeAgent()
	if err != nil {
		return err
	}
	defer func() { _ = procs.Close() }()
	if _, err := procs.WriteString(strconv.Itoa(first.pid)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the agent cannot be moved to its cgroup")
	}
	return first.group.Activate()
}

func openProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "process %s cannot be watched", strconv.Itoa(pid))
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}
