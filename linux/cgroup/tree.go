// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/cgroupfs"
)

// maxDepth is what ID/cmd/PROCESS needs below the namespace. With no deeper
// groups, removal does not have to walk what a sandbox has built.
const maxDepth = "3"

// tree is the directory sandpit/NAMESPACE of the cgroup2 that is mounted.
type tree struct {
	path   string // where that is
	dir    int
	limits []Feature // the controllers that we use of it
	swap   bool
}

// openTree makes our directories in the cgroup2 at m, and has it count from here down with each
// controller that v1 does not hold.
func (d *Driver) openTree(m cgroupfs.Mount) {
	root, dir, err := cgroupfs.OpenNamespace(d.kernel, m.Path, d.namespace, d.owner, func(int) {})
	if err == nil {
		if err = first(
			func() error { return valid(dir) },
			func() error { return d.kernel.Write(dir, "cgroup.max.depth", []byte(maxDepth)) },
		); err != nil {
			unix.Close(dir)
			_ = cgroupfs.RemoveNamespace(d.kernel, root, d.namespace) // unless sandboxes are in it
			unix.Close(root)
		}
	}
	if err != nil {
		for _, f := range Features() {
			d.info.lacks(f, refusal(f, m.Path, err))
		}
		return
	}
	defer unix.Close(root)
	d.tree = &tree{path: m.Path, dir: dir}
	for _, x := range []struct {
		f    Feature
		file string
	}{{Kill, "cgroup.kill"}, {Freeze, "cgroup.freeze"}} {
		if cgroupfs.Exists(dir, x.file) {
			d.info.has(x.f, 2)
		} else {
			d.info.lacks(x.f, fault.New(fault.Unsupported, "%s: this kernel's cgroup2 has no %s", x.f, x.file).
				WithRemedy("run Linux 5.14 or later"))
		}
	}
	available, unusable := cgroupfs.Read(root, "cgroup.controllers")
	if unusable == nil {
		unusable = vacant(root)
	}
	for _, f := range []Feature{CPU, Memory, PIDs} {
		if _, taken := d.info.Version[f]; taken {
			continue
		}
		if unusable == nil && !slices.Contains(strings.Fields(available), string(f)) {
			if inner(root) {
				d.info.lacks(f, withheld(f, m.Path))
			}
			continue
		}
		if err := d.enable(root, f, unusable); err != nil {
			d.info.lacks(f, refusal(f, m.Path, err))
			continue
		}
		d.info.has(f, 2)
		d.tree.limits = append(d.tree.limits, f)
		if f == Memory {
			d.info.has(Sockets, 2)
			if d.tree.swap = cgroupfs.Exists(dir, "memory.swap.max"); d.tree.swap {
				d.info.has(Swap, 2)
			}
		}
	}
}

// enable has the kernel count with a controller, from here: once, instead of once a sandbox. err is
// why it cannot, if that is known.
func (d *Driver) enable(root int, f Feature, err error) error {
	on := []byte("+" + string(f))
	for _, path := range []string{"", cgroupfs.Top + "/", cgroupfs.Top + "/" + d.namespace + "/"} {
		if err == nil {
			err = d.kernel.Write(root, path+"cgroup.subtree_control", on)
		}
	}
	return err
}
