// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

const (
	top = "sandpit"

	// maxDepth is what ID/cmd/PROCESS needs below the namespace. With no deeper
	// groups, removal does not have to walk what a sandbox has built.
	maxDepth = "3"
)

// Options of Open.
type Options struct {
	// Namespace keeps servers apart: 4 to 32 characters of a-z and 0-9, the
	// same for one data directory for ever. Required.
	Namespace string
	// Owner is the directory whose server the namespace is of, which [Unused] reports; "" leaves
	// it as it is.
	Owner string
	// Mountinfo is the file that says where hierarchies are mounted;
	// "" is /proc/self/mountinfo.
	Mountinfo string
	// Agents are the limits of each agent, as far as the host has controllers for them.
	Agents Limits
}

// hierarchy is one mounted tree that we use, with its directory
// sandpit/NAMESPACE open.
type hierarchy struct {
	mount
	dir int
	// limits are the controllers that we use of it.
	limits []Feature
	swap   bool
	// sockets: v1 limits what sockets hold, beside memory.
	sockets bool
}

// Driver makes and finds the groups of one namespace.
type Driver struct {
	namespace string
	owner     string
	kernel    kernel
	info      Info
	v1        []hierarchy
	v2        *hierarchy // nil where no cgroup2 is usable
	spares    spares
	limits    Limits // of each agent
	agents    agentGroups
}

// Open finds the hierarchies and makes our parent directories in them. Missing
// features are no error: they are in Info, and Create refuses limits that need
// them. The caller closes the driver.
func Open(o Options) (*Driver, error) { return open(o, system{}) }

func open(o Options, k kernel) (*Driver, error) {
	if err := checkName("namespace", o.Namespace); err != nil {
		return nil, err
	}
	if o.Mountinfo == "" {
		o.Mountinfo = "/proc/self/mountinfo"
	}
	text, err := os.ReadFile(o.Mountinfo)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "cannot read which cgroups are mounted").
			WithRemedy("mount /proc")
	}
	d := &Driver{namespace: o.Namespace, owner: o.Owner, kernel: k, limits: o.Agents}
	list := mounts(string(text))
	d.info = newInfo(list)
	// v1 first: a controller that v1 holds is not v2's to give.
	slices.SortStableFunc(list, func(a, b mount) int { return number(a.v2) - number(b.v2) })
	for _, m := range list {
		if m.v2 {
			d.openV2(m)
		} else {
			d.openV1(m)
		}
	}
	d.noteAgents()
	return d, nil
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// parents makes sandpit/NAMESPACE, opens it and holds its lock. Another server may remove both
// between our steps, so it is tried again.
func (d *Driver) parents(path string) (root, dir int, err error) {
	root, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	for range 10 {
		if err = d.ensure(root, top); err != nil {
			break
		}
		if err = d.ensure(root, top+"/"+d.namespace); errors.Is(err, unix.ENOENT) {
			continue
		} else if err != nil {
			break
		}
		dir, err = openat(root, top+"/"+d.namespace, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			continue
		}
		if alone(dir) {
			d.removeSpares(dir) // an earlier server's
			d.removeEmptyAgents(dir)
		} else {
			d.agents.others = true
		}
		if err = share(root, top+"/"+d.namespace, dir); err == nil {
			mark(dir, d.owner)
			return root, dir, nil
		}
		unix.Close(dir)
	}
	unix.Close(root)
	return -1, -1, err
}

func (d *Driver) ensure(dir int, path string) error {
	if err := d.kernel.mkdirat(dir, path); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

func (d *Driver) openV1(m mount) {
	h := hierarchy{mount: m, dir: -1}
	root, dir, err := d.parents(m.path)
	if err == nil {
		unix.Close(root)
		h.dir = dir
		// A group inherits this from its parent when it is made: with 0 here
		// no group of ours ever runs the host's release agent.
		err = d.kernel.write(dir, "notify_on_release", []byte("0"))
	}
	for _, c := range m.controllers {
		f := Feature(c)
		if err != nil {
			d.info.lacks(f, refusal(f, m.path, err))
			continue
		}
		d.info.has(f, 1)
		h.limits = append(h.limits, f)
		if f == Memory && exists(h.dir, "memory.memsw.limit_in_bytes") {
			h.swap = true
			d.info.has(Swap, 1)
		}
		if f == Memory {
			h.sockets = exists(h.dir, socketLimit)
		}
	}
	if err != nil {
		if h.dir >= 0 {
			unix.Close(h.dir)
		}
		return
	}
	d.v1 = append(d.v1, h)
}

func (d *Driver) openV2(m mount) {
	if d.v2 != nil {
		return
	}
	root, dir, err := d.parents(m.path)
	if err == nil {
		// The kernel counts from here: once, instead of once a sandbox.
		if err = first(
			func() error { return valid(dir) },
			func() error { return d.kernel.write(dir, "cgroup.max.depth", []byte(maxDepth)) },
		); err != nil {
			unix.Close(dir)
			if d.kernel.rmdirat(root, top+"/"+d.namespace) == nil { // unless sandboxes are in it
				_ = d.kernel.rmdirat(root, top)
			}
			unix.Close(root)
		}
	}
	if err != nil {
		for _, f := range Features() {
			d.info.lacks(f, refusal(f, m.path, err))
		}
		return
	}
	defer unix.Close(root)
	h := &hierarchy{mount: m, dir: dir}
	for _, x := range []struct {
		f    Feature
		file string
	}{{Kill, "cgroup.kill"}, {Freeze, "cgroup.freeze"}} {
		if exists(dir, x.file) {
			d.info.has(x.f, 2)
		} else {
			d.info.lacks(x.f, fault.New(fault.Unsupported, "%s: this kernel's cgroup2 has no %s", x.f, x.file).
				WithRemedy("run Linux 5.14 or later"))
		}
	}
	available, unusable := read(root, "cgroup.controllers")
	if unusable == nil {
		unusable = vacant(root)
	}
	for _, f := range []Feature{CPU, Memory, PIDs} {
		if _, taken := d.info.Version[f]; taken {
			continue
		}
		if unusable == nil && !slices.Contains(list(available), string(f)) {
			if inner(root) {
				d.info.lacks(f, withheld(f, m.path))
			}
			continue
		}
		on, err := []byte("+"+string(f)), unusable
		for _, path := range []string{"", top + "/", top + "/" + d.namespace + "/"} {
			if err == nil {
				err = d.kernel.write(root, path+"cgroup.subtree_control", on)
			}
		}
		if err != nil {
			d.info.lacks(f, refusal(f, m.path, err))
			continue
		}
		d.info.has(f, 2)
		h.limits = append(h.limits, f)
		if f == Memory {
			d.info.has(Sockets, 2)
		}
		if f == Memory && exists(dir, "memory.swap.max") {
			h.swap = true
			d.info.has(Swap, 2)
		}
	}
	d.v2 = h
}

func exists(dir int, path string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, path, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// Info says what works here.
func (d *Driver) Info() Info { return d.info }

// taskFiles opens the tasks files of a group, one for each v1 hierarchy.
func (d *Driver) taskFiles(group string) ([]*os.File, error) {
	var files []*os.File
	for _, h := range d.v1 {
		f, err := openFile(h.dir, group+"/tasks", unix.O_WRONLY)
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil, fmt.Errorf("cgroup: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

// List gives the ids of all groups of the namespace, sorted: also of those
// that are half made or half removed.
func (d *Driver) List() ([]string, error) {
	var ids []string
	for h := range d.hierarchies {
		names, err := children(h.dir, ".")
		if err != nil {
			return nil, fmt.Errorf("cgroup: list %s: %w", h.path, err)
		}
		for _, name := range names {
			if validName(name) {
				ids = append(ids, name)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func (d *Driver) hierarchies(yield func(*hierarchy) bool) {
	for i := range d.v1 {
		if !yield(&d.v1[i]) {
			return
		}
	}
	if d.v2 != nil {
		yield(d.v2)
	}
}

// Close removes the parent directories that are empty, unless another driver has them open,
// and closes the rest. Groups of sandboxes stay. The driver and its groups are unusable after it;
// twice is fine.
func (d *Driver) Close() error {
	var errs []error
	d.closeAgents()
	for h := range d.hierarchies {
		if h.dir < 0 {
			continue
		}
		errs = append(errs, d.closeHierarchy(h))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cgroup: close: %w", err)
	}
	return nil
}

func (d *Driver) closeHierarchy(h *hierarchy) error {
	defer func() {
		unix.Close(h.dir)
		h.dir = -1
	}()
	if !alone(h.dir) {
		return nil // another driver has the namespace open
	}
	var errs []error
	if !h.v2 {
		d.removeSpares(h.dir)
		errs = append(errs, unlessKept(d.removeAgents(h)))
	}
	root, err := unix.Open(h.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	defer unix.Close(root)
	return errors.Join(append(errs,
		unlessKept(d.kernel.rmdirat(root, top+"/"+d.namespace)),
		unlessKept(d.kernel.rmdirat(root, top)))...)
}

// unlessKept drops the errors that say that a directory is in use or gone.
func unlessKept(err error) error {
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
