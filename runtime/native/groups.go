// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"io"
	"os"
	"strconv"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/runtime/native/boot"
	"sandpit.dev/sandbox"
)

// makeGroup makes the sandbox's group, with its limits.
func (s *start) makeGroup(context.Context) (err error) {
	if s.group, err = s.d.cgroups.Create(string(s.i.id), s.limits, int(s.ids.Base)); err != nil {
		return err
	}
	s.undo.Add(func() { _ = s.group.Remove(context.Background()) })
	s.d.checkpoint("create.group")
	return nil
}

// prepareGroups makes the groups of the commands, in the group. With cgroup2's limits only half
// of that can be done before process 1 is there; see activateGroups.
func (s *start) prepareGroups(ctx context.Context) error {
	err := s.group.Prepare()
	if err == nil && !s.d.unified() {
		err = s.openGroupFiles(ctx)
	}
	s.d.checkpoint("create.groups")
	return err
}

// activateGroups is the other half of prepareGroups, where there is one.
func (s *start) activateGroups(ctx context.Context) error {
	if s.files.Cgroup != nil {
		return nil
	}
	if err := s.moveAgent(); err != nil {
		return err
	}
	return s.openGroupFiles(ctx)
}

// moveAgent puts process 1 beside the groups of the commands, out of their limits, which
// cgroup2 needs before it has any; with v1 it is born there.
func (s *start) moveAgent() error {
	procs, err := s.group.MakeAgent()
	if err != nil {
		return err
	}
	defer func() { _ = procs.Close() }()
	if _, err := procs.WriteString(strconv.Itoa(s.first.pid)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the agent cannot be moved to its cgroup")
	}
	return s.group.Activate()
}

// openGroupFiles opens what the agent gets of the groups.
func (s *start) openGroupFiles(context.Context) error {
	failed := func(err error) error {
		s.files = boot.Files{}
		return fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s cannot be given its files", s.i.id)
	}
	commands, mount, err := s.group.CommandsDir()
	if err != nil {
		return failed(err)
	}
	f := &s.files
	f.Cgroup, _ = s.hold(commands, nil)
	s.d.closer.drop([]io.Closer{mount})
	// What this host does not count is told by no file; nothing is said to have
	// ended by it then.
	f.OOM, f.Pids = s.d.null, s.d.null
	info := s.d.cgroups.Info()
	if info.Err(cgroup.Memory) == nil {
		if f.OOM, err = s.hold(s.group.OOMFile()); err != nil {
			return failed(err)
		}
	}
	if info.Err(cgroup.PIDs) == nil {
		if f.Pids, err = s.hold(s.group.PIDsFile()); err != nil {
			return failed(err)
		}
	}
	gauges, err := s.group.Gauges()
	for _, x := range []struct{ to, from **os.File }{
		{&f.Gauges.Memory, &gauges.Memory}, {&f.Gauges.MemoryLimit, &gauges.MemoryLimit}, {&f.Gauges.MemoryStat, &gauges.MemoryStat},
		{&f.Gauges.CPU, &gauges.CPU}, {&f.Gauges.Tasks, &gauges.Tasks},
	} {
		*x.to = s.d.null
		if *x.from != nil {
			*x.to, _ = s.hold(*x.from, nil)
		}
	}
	if err != nil {
		return failed(err)
	}
	if f.Joins, err = s.group.JoinFiles(); err != nil {
		return failed(err)
	}
	for _, join := range f.Joins {
		_, _ = s.hold(join, nil)
	}
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

// unified reports whether cgroup2 holds any of the limits.
func (d *Driver) unified() bool {
	info := d.cgroups.Info()
	for _, f := range []cgroup.Feature{cgroup.CPU, cgroup.Memory, cgroup.PIDs} {
		if info.Version[f] == 2 {
			return true
		}
	}
	return false
}
