// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
	"sandpit.dev/linux/cgroup/counter"
	"sandpit.dev/linux/cgroup/v1"
)

// Agent is what limits one process 1 ([Options].Agents): ID/agent, which [Group.MakeAgent] makes,
// and groups of its own where v1 has controllers. It is apart from [Group], since the process 1
// of a rollback begins before the last one's groups are free.
type Agent struct {
	driver *Driver
	id     string
	v1     *v1.Agent
	killed uint64 // by the kernel in the same groups, before this one
}

// Agent makes the v1 groups for process 1 of the sandbox id; none where v1 has no controller.
func (d *Driver) Agent(id string) (*Agent, error) {
	a, err := d.v1.Agent()
	if err != nil {
		return nil, notMade(id+"'s agent", err)
	}
	return &Agent{driver: d, id: id, v1: a}, nil
}

// FindAgent returns the groups of the running process 1 of a sandbox, which another server
// started.
func (d *Driver) FindAgent(id string, pid int) *Agent {
	a := &Agent{driver: d, id: id, v1: d.v1.FindAgent(pid)}
	a.Mark()
	return a
}

// Files returns the tasks files of the v1 groups, open for writing; none where v1 limits nothing.
// A thread that writes "0" to all of them is in the groups, and so is what it forks.
func (a *Agent) Files() []*os.File { return a.v1.Files() }

// CloseFiles closes them. Twice is fine.
func (a *Agent) CloseFiles() { a.v1.CloseFiles() }

// Mark has OutOfMemory not speak of what the kernel ended in the groups until now: cgroup2 keeps
// those of the process 1 before.
func (a *Agent) Mark() { a.killed, _ = a.kills() }

// OutOfMemory reports whether the kernel ended a process of the agent for its limit of
// memory, which is known before that has ended, until the sandbox's groups are removed.
func (a *Agent) OutOfMemory() bool {
	n, err := a.kills()
	return err == nil && n > a.killed
}

func (a *Agent) kills() (uint64, error) {
	t := a.driver.tree
	if t == nil || !slices.Contains(t.limits, Memory) {
		return a.v1.OOMKills()
	}
	f, err := cgroupfs.Open(t.dir, a.id+"/agent/memory.events", unix.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return counter.OOMKills(f)
}

// Remove removes the v1 groups, once no process is in them, for which it waits (the context's
// time, else 5 s). Those of cgroup2 go with the sandbox's. Twice is fine.
func (a *Agent) Remove(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := a.v1.Remove(ctx); err != nil {
		return notRemoved(a.id+"'s agent", err)
	}
	return nil
}

// limitAgent gives ID/agent its limits, where cgroup2 has any.
func (g *Group) limitAgent() error {
	if err := g.driver.tree.apply(g.driver.kernel, g.id+"/agent", g.driver.agents, true); err != nil {
		return fmt.Errorf("cgroup: limit %s/agent: %w", g.id, err)
	}
	return nil
}
