// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
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

// Create makes the v2 group of a sandbox, which process 1 is born in;
// [Group.Prepare] makes the rest. The id has 4 to 32 characters of a-z and 0-9; owner
// is the host's uid of the sandbox's root, to which the v2 files of the package
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
	for i := range d.v1 {
		if exists(d.v1[i].dir, id) {
			return nil, fault.New(fault.Exists, "the cgroup %s exists", id)
		}
	}
	if h := d.v2; h != nil {
		if err := d.kernel.mkdirat(h.dir, id); err != nil {
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
	for h := range d.hierarchies {
		if exists(h.dir, id) {
			return &Group{driver: d, id: id}, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no cgroup %s", id)
}

// ID is the id the group was created with.
func (g *Group) ID() string { return g.id }

// Prepare makes the groups of the sandbox's commands, once. Limits of v1 are in force
// then, those of v2 by [Group.Activate]. After an error the group is fit for Remove.
func (g *Group) Prepare() error {
	if g.created == nil {
		return g.stranger()
	}
	if err := g.prepare(g.driver.kernel, *g.created); err != nil {
		return notMade(g.id, err)
	}
	return nil
}

func (g *Group) stranger() error {
	return fault.New(fault.State, "the cgroup %s was not made by this server's run, so its limits are not known here", g.id).
		WithRemedy("remove it, or use SetLimits on one that was activated")
}

func (g *Group) prepare(k kernel, want wanted) error {
	ready := g.driver.spares.take()
	defer g.driver.spares.give(ready)
	for i := range g.driver.v1 {
		h := &g.driver.v1[i]
		if err := g.driver.claim(h, ready, g.id); err != nil {
			g.driver.dropSpare(ready)
			return fmt.Errorf("make %s: %w", g.id, err)
		}
		if err := h.apply(k, g.id, want.Limits, true); err != nil {
			g.driver.dropSpare(ready)
			return err
		}
	}
	h := g.driver.v2
	if h == nil {
		return nil
	}
	cmd := g.id + "/cmd"
	return first(
		func() error { return k.mkdirat(h.dir, cmd) },
		func() error { return k.write(h.dir, cmd+"/cgroup.max.descendants", []byte(maxDescendants)) },
		func() error { return k.chown(h.dir, g.id+"/cgroup.procs", want.owner) },
		func() error { return k.chown(h.dir, cmd+"/cgroup.procs", want.owner) },
		func() error { return k.chown(h.dir, cmd, want.owner) },
	)
}

// MakeAgent makes the v2 group ID/agent, for process 1 to be moved to where v2 has
// limits. The file is the group's cgroup.procs, open for writing: process 1 writes
// "0" to it, or the daemon its pid. The caller closes it.
func (g *Group) MakeAgent() (*os.File, error) {
	h, err := g.needV2(Kill)
	if err != nil {
		return nil, err
	}
	if err := g.driver.kernel.mkdirat(h.dir, g.id+"/agent"); err != nil {
		return nil, notMade(g.id+"/agent", err)
	}
	return openFile(h.dir, g.id+"/agent/cgroup.procs", unix.O_WRONLY)
}

// Activate gives the v2 controllers and the limits of Create to the commands, after
// Prepare. It is called once process 1 has left the group of Dir for that of
// MakeAgent; before that the kernel answers EBUSY, which is code State. Where v1 has
// all the limits there is nothing to do, and nothing is done. Twice is fine.
func (g *Group) Activate() error {
	h := g.driver.v2
	if h == nil || len(h.limits) == 0 {
		return nil
	}
	if g.created == nil {
		return g.stranger()
	}
	on := make([]byte, 0, 24)
	for _, f := range h.limits {
		on = append(append(append(on, '+'), f...), ' ')
	}
	err := g.driver.kernel.write(h.dir, g.id+"/cgroup.subtree_control", on[:len(on)-1])
	if errors.Is(err, unix.EBUSY) {
		return fault.Wrap(fault.State, err, "a process is still in the cgroup %s itself", g.id).
			WithRemedy("move process 1 to the agent's group first")
	}
	if err == nil {
		err = h.apply(g.driver.kernel, g.id+"/cmd", g.created.Limits, true)
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
		return g.stranger()
	}
	if err := l.check(&g.driver.info); err != nil {
		return err
	}
	for h := range g.driver.hierarchies {
		if err := h.apply(g.driver.kernel, g.limited(h), l, true); err != nil {
			return fmt.Errorf("cgroup: limit %s: %w", g.id, err)
		}
	}
	g.created.Limits = l
	return nil
}

// needV2 is the error of what only cgroup2 does.
func (g *Group) needV2(f Feature) (*hierarchy, error) {
	if g.driver.v2 == nil {
		return nil, g.driver.info.Err(f)
	}
	return g.driver.v2, nil
}

// Dir opens the v2 group ID, for clone3's CLONE_INTO_CGROUP with process 1. It
// is the daemon's: ".." leads to all groups of the host. The caller closes it.
func (g *Group) Dir() (*os.File, error) {
	h, err := g.needV2(Kill)
	if err != nil {
		return nil, err
	}
	return openFile(h.dir, g.id, unix.O_RDONLY|unix.O_DIRECTORY)
}

// CommandsDir opens ID/cmd, to be passed to the agent: below it, as the
// sandbox's root, it makes child groups (one level), forks into them and kills
// them. The descriptor is of a mount of its own that ends at cmd, so that ".."
// stops there. The caller closes both; the mount's own descriptor is of no use,
// and closing it takes half a millisecond of the kernel's.
func (g *Group) CommandsDir() (dir, mount *os.File, err error) {
	h, err := g.needV2(Kill)
	if err != nil {
		return nil, nil, err
	}
	path := g.id + "/cmd"
	fd, err := unix.OpenTree(h.dir, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open_tree", Path: path, Err: err}
	}
	// open_tree gives an O_PATH descriptor; one that can be listed is handier.
	if dir, err = openFile(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		_ = unix.Close(fd)
		return nil, nil, err
	}
	return dir, os.NewFile(uintptr(fd), path), nil
}

// JoinFiles opens, for writing, the tasks files of the v1 groups of the
// commands, one for each v1 hierarchy; none where v1 limits nothing. A thread
// that writes "0" to all of them, and what it forks from then on, is limited;
// its process is not. The right to write goes by who opened the file, so the
// agent can, and its commands must not get them. The caller closes them.
func (g *Group) JoinFiles() ([]*os.File, error) { return g.driver.taskFiles(g.id) }

// OOMFile opens the counter for counter.OOMKills, read-only; after Activate.
// The caller closes it.
func (g *Group) OOMFile() (*os.File, error) {
	return g.counter(Memory, "memory.oom_control", "memory.events")
}

// PIDsFile opens the counter for counter.PIDsRefused, read-only; after
// Activate. The caller closes it.
func (g *Group) PIDsFile() (*os.File, error) { return g.counter(PIDs, "pids.events", "pids.events") }

func (g *Group) counter(f Feature, v1, v2 string) (*os.File, error) {
	h, path, err := g.holder(f)
	if err != nil {
		return nil, err
	}
	if h.v2 {
		return openFile(h.dir, path+"/"+v2, unix.O_RDONLY)
	}
	return openFile(h.dir, path+"/"+v1, unix.O_RDONLY)
}

// holder finds the hierarchy of a limit, and the limited group in it.
func (g *Group) holder(f Feature) (*hierarchy, string, error) {
	for h := range g.driver.hierarchies {
		for _, have := range h.limits {
			if have == f {
				return h, g.limited(h), nil
			}
		}
	}
	return nil, "", g.driver.info.Err(f)
}

func (g *Group) limited(h *hierarchy) string {
	if h.v2 {
		return g.id + "/cmd"
	}
	return g.id
}

// Limits reads the limits in force; after Activate.
func (g *Group) Limits() (Limits, error) {
	var l Limits
	for h := range g.driver.hierarchies {
		if err := h.current(g.limited(h), &l); err != nil {
			return Limits{}, fmt.Errorf("cgroup: %w", g.gone(err))
		}
	}
	return l, nil
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
	if err := g.set(l); err != nil {
		if back := g.set(before); back != nil {
			err = errors.Join(err, fmt.Errorf("put back the limits before: %w", back))
		}
		return fmt.Errorf("cgroup: %w", err)
	}
	return nil
}

func (g *Group) set(l Limits) error {
	for h := range g.driver.hierarchies {
		if err := h.apply(g.driver.kernel, g.limited(h), l, false); err != nil {
			return err
		}
	}
	return nil
}

// Usage is what the commands of a sandbox use now.
type Usage struct {
	MemoryBytes int64 // page cache included
	PIDs        int   // processes and threads; on v1 with up to SpawnerThreads of the agent's
}

// Usage reads it; after Activate. What is not counted on this host is zero.
func (g *Group) Usage() (Usage, error) {
	var u Usage
	for _, x := range []struct {
		f      Feature
		v1, v2 string
		set    func(int64)
	}{
		{Memory, "memory.usage_in_bytes", "memory.current", func(v int64) { u.MemoryBytes = v }},
		{PIDs, "pids.current", "pids.current", func(v int64) { u.PIDs = int(v) }},
	} {
		h, path, err := g.holder(x.f)
		if err != nil {
			continue
		}
		file := x.v1
		if h.v2 {
			file = x.v2
		}
		text, err := read(h.dir, path+"/"+file)
		if err != nil {
			return Usage{}, fmt.Errorf("cgroup: %w", g.gone(err))
		}
		v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("cgroup: read %s of %s: %w", file, path, err)
		}
		x.set(v)
	}
	return u, nil
}

// gone gives a missing file its code.
func (g *Group) gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.NotFound, err, "the cgroup %s does not exist, or was not activated", g.id)
	}
	return err
}
