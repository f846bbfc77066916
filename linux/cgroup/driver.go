// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/cgroupfs"
	"sandpit.dev/linux/cgroup/v1"
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

// Driver makes and finds the groups of one namespace.
type Driver struct {
	namespace string
	owner     string
	kernel    cgroupfs.Kernel
	info      Info
	tree      *tree    // cgroup2; nil where none is usable
	v1        *v1.Tree // the controllers that cgroup2 does not have
	agents    Limits   // of each
}

// Open finds the hierarchies and makes our parent directories in them. Missing
// features are no error: they are in Info, and Create refuses limits that need
// them. The caller closes the driver.
func Open(o Options) (*Driver, error) { return open(o, cgroupfs.System{}) }

func open(o Options, k cgroupfs.Kernel) (*Driver, error) {
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
	d := &Driver{namespace: o.Namespace, owner: o.Owner, kernel: k, agents: o.Agents,
		v1: v1.New(k, o.Namespace, o.Owner, v1.Limits(o.Agents))}
	mounts := cgroupfs.Mounts(string(text))
	d.info = newInfo(mounts)
	// v1 first: a controller that v1 holds is not cgroup2's to give.
	for _, m := range mounts {
		if !m.V2 {
			d.openV1(m)
		}
	}
	if i := slices.IndexFunc(mounts, func(m cgroupfs.Mount) bool { return m.V2 }); i >= 0 {
		d.openTree(mounts[i])
	}
	return d, nil
}

// openV1 uses a v1 hierarchy.
func (d *Driver) openV1(m cgroupfs.Mount) {
	swap, err := d.v1.Add(m)
	for _, c := range m.Controllers {
		f := Feature(c)
		if err != nil {
			d.info.lacks(f, refusal(f, m.Path, err))
			continue
		}
		d.info.has(f, 1)
		if f == Memory && swap {
			d.info.has(Swap, 1)
		}
	}
}

// Info says what works here.
func (d *Driver) Info() Info { return d.info }

// List returns the ids of all groups of the namespace, sorted: also of those
// that are half made or half removed.
func (d *Driver) List() ([]string, error) {
	names, err := d.v1.Names()
	if err == nil && d.tree != nil {
		var more []string
		more, err = cgroupfs.Children(d.tree.dir, ".")
		names = append(names, more...)
	}
	if err != nil {
		return nil, fmt.Errorf("cgroup: list %s: %w", d.namespace, err)
	}
	ids := slices.DeleteFunc(names, func(name string) bool { return !validName(name) })
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// Close removes the parent directories that are empty, unless another driver has them open,
// and closes the rest. Groups of sandboxes stay. The driver and its groups are unusable after it;
// twice is fine.
func (d *Driver) Close() error {
	err := d.v1.Close()
	if t := d.tree; t != nil && t.dir >= 0 {
		err = errors.Join(err, cgroupfs.CloseNamespace(d.kernel, t.path, d.namespace, t.dir, func() error { return nil }))
		t.dir = -1
	}
	if err != nil {
		return fmt.Errorf("cgroup: close: %w", err)
	}
	return nil
}
