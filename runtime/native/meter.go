// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var (
	_ runtime.Meter        = (*Instance)(nil)
	_ runtime.ProcessMeter = (*Instance)(nil)
)

// Use reads what the groups of the commands count, and the quota of the layer. See [runtime.Meter].
func (i *Instance) Use(ctx context.Context) (runtime.Use, error) {
	if err := ctx.Err(); err != nil {
		return runtime.Use{}, err
	}
	l, err := i.running()
	if err != nil {
		return runtime.Use{}, err
	}
	u, err := l.group.Totals()
	if fault.Is(err, fault.NotFound) {
		return runtime.Use{}, fault.Wrap(fault.State, err, "sandbox %s is not running", i.id)
	}
	if err != nil {
		return runtime.Use{}, fault.Wrap(fault.Unavailable, err, "what sandbox %s uses cannot be read", i.id)
	}
	out := runtime.Use{CPU: u.CPU, MemoryBytes: u.MemoryBytes, MemoryPeak: u.MemoryPeak, DiskBytes: -1, Tasks: int64(u.PIDs)}
	info := i.d.cgroups.Info()
	if info.Err(cgroup.Memory) != nil {
		out.MemoryBytes, out.MemoryPeak = -1, -1
	}
	if info.Err(cgroup.PIDs) != nil {
		out.Tasks = -1
	}
	if used, _, err := i.d.layers.Usage(string(i.id)); err == nil { // else there are no quotas, and only a walk could tell
		out.DiskBytes = used
	}
	return out, nil
}

// Processes reads the groups of the commands, and what the kernel tells of who is in them. See [runtime.ProcessMeter].
func (i *Instance) Processes(ctx context.Context) ([]runtime.Process, error) {
	l, err := i.running()
	if err != nil {
		return nil, err
	}
	found, err := l.group.Processes(ctx)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, fault.Wrap(fault.State, err, "sandbox %s is not running", i.id)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fault.Wrap(fault.Unavailable, err, "what runs in sandbox %s cannot be read", i.id)
	}
	all := make([]runtime.Process, 0, len(found))
	for _, p := range found {
		all = append(all, runtime.Process{
			PID: p.PID, Parent: p.Parent, Name: sandbox.Clip(p.Name, 64), State: stateOf(p.State), CPU: p.CPU, Age: p.Age, MemoryBytes: p.MemoryBytes, Threads: p.Threads,
		})
	}
	return all, nil
}

// stateOf is a letter of the kernel's in a word.
func stateOf(letter byte) string {
	switch letter {
	case 'R':
		return "running"
	case 'S', 'I':
		return "sleeping"
	case 'D':
		return "waiting"
	case 'T', 't':
		return "stopped"
	case 'Z', 'X':
		return "zombie"
	}
	return "other"
}
