// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/cgroupfs"
)

// Feature is one thing that cgroups do for a sandbox.
type Feature string

const (
	CPU    Feature = "cpu"    // limit of processor time
	Memory Feature = "memory" // limit of memory
	Swap   Feature = "swap"   // the memory limit leaves nothing to swap
	PIDs   Feature = "pids"   // limit of processes and threads
	// Sockets: the limit of memory is one of what sockets hold, too.
	Sockets Feature = "sockets"
	Kill    Feature = "kill" // kill all of a sandbox at once
	Freeze  Feature = "freeze"
)

// Features lists every feature, in the order to show them.
func Features() []Feature { return []Feature{CPU, Memory, Swap, Sockets, PIDs, Kill, Freeze} }

// Info says what this host's cgroups can do for us.
type Info struct {
	// Layout is "v2", "v1", "hybrid" (both are mounted) or "none".
	Layout string
	// Version says which cgroup version does a feature: 2, 1, or absent.
	Version map[Feature]int
	// Missing says why a feature is absent and how to mend it.
	Missing map[Feature]*fault.Error
}

// Err is nil when the feature works, else why it does not.
func (i Info) Err(f Feature) error {
	if e, ok := i.Missing[f]; ok {
		return e
	}
	return nil
}

func (i *Info) has(f Feature, version int) {
	i.Version[f] = version
	delete(i.Missing, f)
}

func (i *Info) lacks(f Feature, e *fault.Error) {
	if _, ok := i.Version[f]; !ok {
		i.Missing[f] = e
	}
}

// newInfo starts with nothing: what is found is then taken off.
func newInfo(mounts []cgroupfs.Mount) Info {
	i := Info{Layout: "none", Version: map[Feature]int{}, Missing: map[Feature]*fault.Error{}}
	for _, m := range mounts {
		switch {
		case i.Layout == "none" && m.V2:
			i.Layout = "v2"
		case i.Layout == "none":
			i.Layout = "v1"
		case m.V2 && i.Layout == "v1", !m.V2 && i.Layout == "v2":
			i.Layout = "hybrid"
		}
	}
	for _, f := range Features() {
		switch f {
		case Kill, Freeze:
			i.Missing[f] = fault.New(fault.Unsupported, "%s: no cgroup2 file system is mounted", f).
				WithRemedy("mount one: mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified")
		case Swap:
			i.Missing[f] = fault.New(fault.Unsupported, "swap: the kernel counts no swap for groups").
				WithRemedy("boot with swapaccount=1, or turn swap off (swapoff -a)")
		case Sockets:
			i.Missing[f] = fault.New(fault.Unsupported, "sockets: cgroup v1 counts what sockets hold beside the limit of memory: "+
				"a sandbox that means to can hold some times its limit of the host's memory in them").
				WithRemedy("boot with cgroup v2: cgroup_no_v1=all, or with systemd systemd.unified_cgroup_hierarchy=1")
		default:
			i.Missing[f] = fault.New(fault.Unsupported, "%s: no mounted cgroup hierarchy has the %s controller", f, f).
				WithRemedy("boot without cgroup_disable=%s, and mount cgroup2: mount -t cgroup2 none /sys/fs/cgroup", f)
		}
	}
	return i
}

// refusal explains why a hierarchy at path could not be used.
func refusal(f Feature, path string, err error) *fault.Error {
	e := fault.Wrap(fault.Unsupported, err, "%s: cannot use the cgroups at %s: %s", f, path, reason(err))
	switch {
	case errors.Is(err, unix.EROFS):
		return e.WithRemedy("mount it writable: mount -o remount,rw %s (in a container: run it with a writable cgroup mount)", path)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return e.WithRemedy("run the server as root")
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EOPNOTSUPP):
		return e.WithRemedy("the group at %[1]s has processes of its own, and so cannot give its children controllers: "+
			"move them to a child group before the server starts, with "+
			"mkdir %[1]s/init && xargs -n1 <%[1]s/cgroup.procs >%[1]s/init/cgroup.procs (or docker run --cgroupns=host)", path)
	case errors.Is(err, unix.ENOENT):
		return e.WithRemedy("the parent of %s gives it no such controller: enable it in the parent's cgroup.subtree_control", path)
	}
	return e.WithRemedy("see the kernel log (dmesg)")
}

func reason(err error) string {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno.Error()
	}
	return "unknown reason"
}
