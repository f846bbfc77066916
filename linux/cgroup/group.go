// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/cgroupfs"
	"sandpit.dev/linux/cgroup/v1"
)

// maxDescendants bounds the groups that the agent, or who took its place, may
// make below cmd: far more than processes, too few to hurt the kernel. Open
// bounds their depth.
const maxDescendants = "4096"

// Group is the groups of one sandbox. It holds nothing open: an idle sandbox
// costs the daemon no file descriptor here.
type Group struct {
	driver  *Driver
	id      string
	created *wanted // nil for a group that Open found
}

// Create makes the cgroup2 group of a sandbox, which process 1 is born in;
// [Group.Prepare] makes the rest. The id has 4 to 32 characters of a-z and 0-9; owner
// is the host's uid of the sandbox's root, to which the files of the package
// comment are given.
//
// Codes: Invalid for a bad id or limit, Unsupported for a limit that this host
// has no controller for, Exists for an id that any hierarchy has.
func (d *Driver) Create(id string, l Limits, owner int) (*Group, error) {
	if err := checkName("id", id); err != nil {
		return nil, err
	}
	if err := l.check(&d.info); err != nil {
		return nil, err
	}
	if d.v1.Exists(id) {
		return nil, fault.New(fault.Exists, "the cgroup %s exists", id)
	}
	if t := d.tree; t != nil {
		if err := d.kernel.Mkdir(t.dir, id); err != nil {
			return nil, notMade(id, err)
		}
	}
	return &Group{driver: d, id: id, created: &wanted{l, owner}}, nil
}

// wanted is what Create was asked for, and Prepare and Activate give.
type wanted struct {
	Limits
	owner int
}

// notMade says why a group was not made.
func notMade(id string, err error) error {
	switch {
	case errors.Is(err, unix.EEXIST):
		return fault.Wrap(fault.Exists, err, "the cgroup %s exists", id)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EAGAIN):
		return fault.Wrap(fault.Exhausted, err, "the host is out of room for cgroups: %s", reason(err)).
			WithRemedy("remove sandboxes, or raise cgroup.max.descendants of the parent groups")
	}
	return fmt.Errorf("cgroup: create %s: %w", id, err)
}

func first(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Open finds the groups of a sandbox again, for instance after a restart:
// NotFound when no hierarchy has them. Removing half-removed ones is fine.
func (d *Driver) Open(id string) (*Group, error) {
	if err := checkName("id", id); err != nil {
		return nil, err
	}
	if d.tree != nil && cgroupfs.Exists(d.tree.dir, id) || d.v1.Exists(id) {
		return &Group{driver: d, id: id}, nil
	}
	return nil, fault.New(fault.NotFound, "there is no cgroup %s", id)
}

// ID returns the id the group was created with.
func (g *Group) ID() string { return g.id }

// commands is the path of the group that carries the limits of the commands.
func (g *Group) commands() string { return g.id + "/cmd" }

// Prepare makes the groups of the sandbox's commands, once. Those of cgroup2 are in force by
// [Group.Activate], those of v1 at once. After an error the group is fit for Remove.
func (g *Group) Prepare() error {
	if g.created == nil {
		return g.notCreated()
	}
	if err := g.prepare(g.driver.kernel, *g.created); err != nil {
		return notMade(g.id, err)
	}
	return nil
}

func (g *Group) notCreated() error {
	return fault.New(fault.State, "the cgroup %s was not made by this server's run, so its limits are not known here", g.id).
		WithRemedy("remove it, or use SetLimits on one that was activated")
}

func (g *Group) prepare(k cgroupfs.Kernel, want wanted) error {
	if err := g.driver.v1.Make(g.id, v1.Limits(want.Limits)); err != nil {
		return err
	}
	t := g.driver.tree
	if t == nil {
		return nil
	}
	cmd := g.commands()
	return first(
		func() error { return k.Mkdir(t.dir, cmd) },
		func() error { return k.Write(t.dir, cmd+"/cgroup.max.descendants", []byte(maxDescendants)) },
		func() error { return k.Chown(t.dir, g.id+"/cgroup.procs", want.owner) },
		func() error { return k.Chown(t.dir, cmd+"/cgroup.procs", want.owner) },
		func() error { return k.Chown(t.dir, cmd, want.owner) },
	)
}

// MakeAgent makes the group ID/agent, for process 1 to be moved to where cgroup2 has
// limits. The file is the group's cgroup.procs, open for writing: process 1 writes
// "0" to it, or the daemon its pid. The caller closes it.
func (g *Group) MakeAgent() (*os.File, error) {
	t, err := g.needTree()
	if err != nil {
		return nil, err
	}
	if err := g.driver.kernel.Mkdir(t.dir, g.id+"/agent"); err != nil {
		return nil, notMade(g.id+"/agent", err)
	}
	return cgroupfs.Open(t.dir, g.id+"/agent/cgroup.procs", unix.O_WRONLY)
}

// Activate gives the controllers of cgroup2 and the limits of Create to the commands, after
// Prepare. It is called once process 1 has left the group of Dir for that of
// MakeAgent; before that the kernel answers EBUSY, which is code State. Where v1 has
// all the limits there is nothing to do, and nothing is done. Twice is fine.
func (g *Group) Activate() error {
	t := g.driver.tree
	if t == nil || len(t.limits) == 0 {
		return nil
	}
	if g.created == nil {
		return g.notCreated()
	}
	on := make([]byte, 0, 24)
	for _, f := range t.limits {
		on = append(append(append(on, '+'), f...), ' ')
	}
	err := g.driver.kernel.Write(t.dir, g.id+"/cgroup.subtree_control", on[:len(on)-1])
	if errors.Is(err, unix.EBUSY) {
		return fault.Wrap(fault.State, err, "a process is still in the cgroup %s itself", g.id).
			WithRemedy("move process 1 to the agent's group first")
	}
	if err == nil {
		err = t.apply(g.driver.kernel, g.commands(), g.created.Limits, true)
	}
	if err != nil {
		return fmt.Errorf("cgroup: activate %s: %w", g.id, err)
	}
	return g.limitAgent()
}

// Limit gives limits to a group that was made without any, after Activate: what
// [Driver.Create] would have been given, had they been known.
func (g *Group) Limit(l Limits) error {
	if g.created == nil {
		return g.notCreated()
	}
	if err := l.check(&g.driver.info); err != nil {
		return err
	}
	if err := g.apply(l, true); err != nil {
		return fmt.Errorf("cgroup: limit %s: %w", g.id, err)
	}
	g.created.Limits = l
	return nil
}

// apply writes limits, each where it is held.
func (g *Group) apply(l Limits, fresh bool) error {
	if t := g.driver.tree; t != nil {
		if err := t.apply(g.driver.kernel, g.commands(), l, fresh); err != nil {
			return err
		}
	}
	err := g.driver.v1.Apply(g.id, v1.Limits(l), fresh)
	if errors.Is(err, unix.EBUSY) {
		return inUse(l.MemoryBytes, err)
	}
	return err
}

// needTree returns why what only cgroup2 does does not work.
func (g *Group) needTree() (*tree, error) {
	if g.driver.tree == nil {
		return nil, g.driver.info.Err(Kill)
	}
	return g.driver.tree, nil
}

// Dir opens the group ID, for clone3's CLONE_INTO_CGROUP with process 1. It
// is the daemon's: ".." leads to all groups of the host. The caller closes it.
func (g *Group) Dir() (*os.File, error) {
	t, err := g.needTree()
	if err != nil {
		return nil, err
	}
	return cgroupfs.Open(t.dir, g.id, unix.O_RDONLY|unix.O_DIRECTORY)
}

// CommandsDir opens ID/cmd, to be passed to the agent: below it, as the
// sandbox's root, it makes child groups (one level), forks into them and kills
// them. The descriptor is of a mount of its own that ends at cmd, so that ".."
// stops there. The caller closes both; the mount's own descriptor is of no use,
// and closing it takes half a millisecond of the kernel's.
func (g *Group) CommandsDir() (dir, mount *os.File, err error) {
	t, err := g.needTree()
	if err != nil {
		return nil, nil, err
	}
	path := g.commands()
	fd, err := unix.OpenTree(t.dir, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open_tree", Path: path, Err: err}
	}
	// open_tree returns an O_PATH descriptor; one that can be listed is handier.
	if dir, err = cgroupfs.Open(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		_ = unix.Close(fd)
		return nil, nil, err
	}
	return dir, os.NewFile(uintptr(fd), path), nil
}

// JoinFiles opens the tasks files of the v1 groups of the commands; none where v1 limits
// nothing. See [v1.Tree.JoinFiles].
func (g *Group) JoinFiles() ([]*os.File, error) {
	files, err := g.driver.v1.JoinFiles(g.id)
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	return files, nil
}

// OOMFile opens the counter for counter.OOMKills, read-only; after Activate.
// The caller closes it.
func (g *Group) OOMFile() (*os.File, error) {
	return g.counter(Memory, "memory.events", g.driver.v1.OOMFile)
}

// PIDsFile opens the counter for counter.PIDsRefused, read-only; after
// Activate. The caller closes it.
func (g *Group) PIDsFile() (*os.File, error) {
	return g.counter(PIDs, "pids.events", g.driver.v1.PIDsFile)
}

func (g *Group) counter(f Feature, file string, older func(string) (*os.File, error)) (*os.File, error) {
	switch g.driver.info.Version[f] {
	case 2:
		return cgroupfs.Open(g.driver.tree.dir, g.commands()+"/"+file, unix.O_RDONLY)
	case 1:
		return older(g.id)
	}
	return nil, g.driver.info.Err(f)
}

// Limits reads the limits in force; after Activate.
func (g *Group) Limits() (Limits, error) {
	var l Limits
	if t := g.driver.tree; t != nil {
		if err := t.read(g.commands(), &l); err != nil {
			return Limits{}, fmt.Errorf("cgroup: %w", g.gone(err))
		}
	}
	older := v1.Limits(l)
	if err := g.driver.v1.Limits(g.id, &older); err != nil {
		return Limits{}, fmt.Errorf("cgroup: %w", g.gone(err))
	}
	return Limits(older), nil
}

// SetLimits replaces all limits of a group, while it runs or not; after
// Activate. When one cannot be set (Conflict: memory below what is in use, and
// cannot be freed), those before it are put back.
func (g *Group) SetLimits(l Limits) error {
	if err := l.check(&g.driver.info); err != nil {
		return err
	}
	before, err := g.Limits()
	if err != nil {
		return err
	}
	if l.MemoryBytes != 0 && (before.MemoryBytes == 0 || l.MemoryBytes < before.MemoryBytes) {
		if err := g.shrink(l.MemoryBytes); err != nil {
			return err
		}
	}
	if err := g.apply(l, false); err != nil {
		if back := g.apply(before, false); back != nil {
			err = errors.Join(err, fmt.Errorf("put back the limits before: %w", back))
		}
		return fmt.Errorf("cgroup: %w", err)
	}
	return nil
}

// gone gives a missing file its code.
func (g *Group) gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.NotFound, err, "the cgroup %s does not exist, or was not activated", g.id)
	}
	return err
}
