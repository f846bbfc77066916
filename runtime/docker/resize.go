// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"strings"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

var (
	_ runtime.Resizer = (*Instance)(nil)
	_ runtime.Meter   = (*Instance)(nil)
)

// Resize changes the limits of CPU, memory and processes of what runs. Another one of the disk is refused.
func (i *Instance) Resize(ctx context.Context, l sandbox.Limits) error {
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if _, err := i.life(); err != nil {
		return err
	}
	if err := i.d.hasGroups(ctx); err != nil {
		return err
	}
	work, cancel := i.d.finishing(ctx, undoTimeout)
	defer cancel()
	before, err := i.d.engine.InspectContainer(work, i.its())
	if err != nil {
		return i.orDown(err)
	}
	if err := i.keepsDisk(before, l); err != nil {
		return err
	}
	want := resources(l)
	if want.Memory < before.HostConfig.Memory {
		// Version 2 of cgroups takes any limit, and the kernel kills what is over it.
		s, err := i.d.engine.ContainerStats(work, i.its())
		if err != nil {
			return i.orDown(err)
		}
		if used := held(s); used > want.Memory {
			return i.tooSmall(l, used)
		}
	}
	err = i.d.engine.UpdateContainer(work, i.its(), want)
	if err == nil {
		i.limitLogs(ctx, l)
		return nil
	}
	undo, done := i.d.finishing(ctx, undoTimeout)
	defer done()
	if back := i.d.engine.UpdateContainer(undo, i.its(), before.HostConfig.Resources); back != nil {
		err = errors.Join(err, back)
	}
	if strings.Contains(err.Error(), "device or resource busy") { // version 1 could not take so much back
		return i.tooSmall(l, -1)
	}
	return i.orDown(err)
}

func (i *Instance) tooSmall(l sandbox.Limits, used int64) error {
	if used < 0 {
		return fault.New(fault.Conflict, "sandbox %s uses more than %d MiB of memory now", i.id, l.MemoryMB).WithRemedy("end some of its processes first")
	}
	return fault.New(fault.Conflict, "sandbox %s uses %d MiB of memory now, more than %d", i.id, used>>20, l.MemoryMB).WithRemedy("end some of its processes first")
}

// held is what of a container's memory the kernel cannot take back: all but the cache of files.
func held(s engineapi.Stats) int64 {
	used := int64(s.Memory.Usage) //nolint:gosec // bytes of a memory
	for _, name := range [][2]string{{"total_inactive_file", "inactive_file"}, {"total_active_file", "active_file"}} {
		n, ok := s.Memory.Stats[name[0]]
		if !ok {
			n = s.Memory.Stats[name[1]]
		}
		used -= int64(n) //nolint:gosec // bytes of a memory
	}
	return used
}

// orDown returns fault.State where the instance went down meanwhile, else err.
func (i *Instance) orDown(err error) error {
	if _, over := i.life(); over != nil {
		return over
	}
	return err
}

// pausedPatience is how long a call waits to be written to the socket of an agent that is paused.
const pausedPatience = 10 * time.Millisecond

// limitLogs tells the agent how much the output may take that it keeps. One that does not answer
// has it from its next start on; one that is paused, once it goes on.
func (i *Instance) limitLogs(ctx context.Context, l sandbox.Limits) {
	patience := time.Duration(agentPatience)
	if i.Paused() {
		patience = pausedPatience
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := agent.NewClient(i.Dial).LimitLogs(limit, l.LogBytes()); err != nil {
		i.d.log.Debug("a sandbox's agent was not told how much output to keep", "sandbox", i.id, "error", err)
	}
}

// Use returns what the Engine counts. How large the layer is it tells only by a walk through it.
func (i *Instance) Use(ctx context.Context) (runtime.Use, error) {
	if _, err := i.life(); err != nil {
		return runtime.Use{}, err
	}
	switch l, err := i.d.limitable(ctx); {
	case err != nil:
		return runtime.Use{}, i.orDown(err)
	case l.free: // and counts nothing
		return runtime.Use{CPU: -1, MemoryBytes: -1, MemoryPeak: -1, DiskBytes: -1, Tasks: -1}, nil
	}
	s, err := i.d.engine.ContainerStats(ctx, i.its())
	if err != nil {
		return runtime.Use{}, i.orDown(err)
	}
	if _, err := i.life(); err != nil { // zeros are of one that went down
		return runtime.Use{}, err
	}
	u := runtime.Use{
		CPU: time.Duration(s.CPU.Usage.Total), MemoryBytes: int64(s.Memory.Usage), MemoryPeak: -1, DiskBytes: -1, Tasks: max(0, int64(s.Pids.Current)-agentThreads), //nolint:gosec // figures of a host
	}
	if s.Memory.Max > 0 {
		u.MemoryPeak = int64(s.Memory.Max) //nolint:gosec // as above
	}
	return u, nil
}
