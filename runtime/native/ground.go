// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/layer"
	"sandpit.dev/linux/mount"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native/boot"
)

// ground is what a life stands on, and what is made while its process 1 is started: its
// disk, its volumes, and the groups of its commands.
type ground struct {
	disk     disk
	volumes  volumes
	files    boot.Files
	filesErr error
	held     []io.Closer // what files and disk were made of
}

// lay makes a ground; it is to be taken back after an error, too. A blank has its groups
// already; else they come last, or while a copy of a disk is waited for. With cgroup2's limits
// only half of them can be made before process 1 is there.
func (i *Instance) lay(ctx context.Context, spec runtime.Spec, open func() (*layer.Layer, error), uids uidRange, group *cgroup.Group, b *blank) (*ground, error) {
	g := new(ground)
	groups := func() {
		if g.filesErr = group.Prepare(); g.filesErr == nil && !i.d.unified() {
			g.files, g.filesErr = i.bootFiles(group, g.hold)
		}
		i.d.checkpoint("create.groups")
	}
	early := b != nil || spec.From != ""
	if early && b == nil {
		groups()
	}
	var err error
	if g.disk, err = i.mountDisk(ctx, spec, open, uids); err != nil {
		return g, err
	}
	g.held = append(g.held, g.disk.log)
	i.d.checkpoint("create.disk")
	if len(spec.Mounts) > 0 {
		g.volumes, err = i.openVolumes(spec.Mounts, g.disk.root, uids.NS)
		i.d.checkpoint("create.volumes")
	}
	if err == nil && !early {
		groups()
	}
	return g, err
}

func (g *ground) hold(f *os.File, err error) (*os.File, error) {
	if err == nil {
		g.held = append(g.held, f)
	}
	return f, err
}

// bootFiles gives what the agent gets, but for its view of the disk.
func (g *ground) bootFiles(i *Instance, first *firstProcess, b *blank) (boot.Files, error) {
	switch {
	case b != nil:
		g.files = b.files
	case g.filesErr == nil && i.d.unified():
		if g.filesErr = i.d.setApart(first); g.filesErr == nil {
			g.files, g.filesErr = i.bootFiles(first.group, g.hold)
		}
	}
	g.files.Log = g.disk.log
	return g.files, g.filesErr
}

// undo takes it back.
func (g *ground) undo(i *Instance) {
	if g.disk.root != nil {
		_ = g.disk.root.Close()
	}
	_ = i.remove(volumesFile) // there is none without volumes
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
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return disk{}, fault.NoSpace(i.FullDisk(), err, "the root of sandbox %s cannot be mounted: its disk has no room for that", i.id).
				WithRemedy("delete sandboxes, snapshots or volumes that are not needed, or give this one a larger disk")
		}
		return disk{}, fault.Wrap(fault.Unavailable, err, "the root of sandbox %s cannot be mounted", i.id).
			WithRemedy("run `sandpit doctor` on the host")
	}
	if err := l.FreshWork(); err != nil {
		return disk{}, err
	}
	image, err := hold(mount.CloneAt(unix.AT_FDCWD, spec.Image.Root))
	if err != nil {
		return failed(err)
	}
	if err := mount.IDMap(image, uids.NS); err != nil {
		return failed(err)
	}
	writable, err := hold(i.d.clone(l.Fd()))
	if err != nil {
		return failed(err)
	}
	if err := mount.IDMap(writable, uids.NS); err != nil {
		return failed(err)
	}
	logs, err := hold(i.d.layers.Logs(string(i.id)))
	if err != nil {
		return disk{}, err
	}
	mapped, err := hold(i.d.clone(int(logs.Fd())))
	if err != nil {
		return failed(err)
	}
	if err := mount.IDMap(mapped, uids.NS); err != nil {
		return failed(err)
	}
	log, err := openDir(int(mapped.Fd()), ".")
	if err != nil {
		return failed(err)
	}
	// A layer that stays busy is another server's, or a bug.
	limit, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	root, err := i.d.overlay(limit, image, writable, uids.Base)
	if errors.Is(err, unix.ESTALE) {
		// The kernel found an index in the work directory that is another upper directory's.
		// A copy's is made anew, yet this was seen once; the index is nobody's loss.
		i.d.log.Warn("the work directory of a layer was another's, and is made anew", "sandbox", i.id)
		if err = l.FreshWork(); err == nil {
			root, err = i.d.overlay(limit, image, writable, uids.Base)
		}
	}
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

func openDir(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
