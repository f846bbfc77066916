// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/runtime"
)

var _ runtime.Meter = (*Instance)(nil)

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
