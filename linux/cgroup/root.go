// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup/cgroupfs"
)

// In a container, or any cgroup namespace, the group that a cgroup2 is mounted at is not the
// root of all groups, and what holds for groups holds for it: it gives its children those
// controllers that its own parent gives it, and none as long as it has processes.

// inner reports whether an open group is not the root of all, which alone has no type.
func inner(group int) bool { return cgroupfs.Exists(group, "cgroup.type") }

// vacant is EBUSY for a group that has processes of its own and is not the root of all. The
// kernel would let it have a part of the controllers (cpu and pids, which threads can share),
// but takes all groups below it for invalid then: they could have no process.
func vacant(group int) error {
	if !inner(group) {
		return nil
	}
	procs, err := cgroupfs.Read(group, "cgroup.procs")
	if err == nil && strings.TrimSpace(procs) != "" {
		return unix.EBUSY
	}
	return err
}

// valid is EOPNOTSUPP for a group that can have no processes, since one above it has both
// processes and controllers, or is made of threads.
func valid(group int) error {
	if !inner(group) {
		return nil
	}
	kind, err := cgroupfs.Read(group, "cgroup.type")
	if err == nil && strings.TrimSpace(kind) != "domain" {
		return unix.EOPNOTSUPP
	}
	return err
}

// withheld is why a feature is missing that the parent of the group at path does not give it.
func withheld(f Feature, path string) *fault.Error {
	return fault.New(fault.Unsupported, "%s: the group at %s is not given the %s controller by the one above it", f, path, f).
		WithRemedy("have the host give it: in a container by its manager's options, in a systemd unit by Delegate=yes")
}
