// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func getSandboxLimits() tool {
	return tool{
		name: "get_sandbox_limits", title: "What a sandbox may have", readOnly: true, idempotent: true,
		about:   "What a sandbox gets by default and may ask for at most, how long commands may take, how many sandboxes you have and what they take.",
		example: `{}`,
		run:     limits,
	}
}

// limitsShape is the structured answer. Budget is null while nothing is metered.
type limitsShape struct {
	Default        amounts        `json:"default"`
	Least          amounts        `json:"least"`
	Most           amounts        `json:"most"`
	Networks       []string       `json:"networks"`
	CommandSeconds float64        `json:"command_timeout_seconds"`
	MaxSeconds     float64        `json:"max_command_timeout_seconds"`
	Root           bool           `json:"root_allowed"`
	Sandboxes      map[string]int `json:"sandboxes"`
	InUse          amounts        `json:"in_use"` // what those that run may take together
	Budget         *float64       `json:"budget"`
}

type amounts struct {
	CPUs     float64 `json:"cpus"`
	MemoryMB int     `json:"memory_mb"`
	DiskMB   int     `json:"disk_mb"`
	Pids     int     `json:"pids"`
}

func (a amounts) String() string {
	return fmt.Sprintf("%s CPU, %d MiB memory, %d MiB disk, %d processes", decimal(a.CPUs), a.MemoryMB, a.DiskMB, a.Pids)
}

func limits(ctx context.Context, c *call) (*answer, error) {
	out, err := c.limits(ctx)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, n := range out.Sandboxes {
		total += n
	}
	return &answer{
		verdict: fmt.Sprintf("a sandbox gets %s", out.Default),
		lines: []string{
			"at most: " + out.Most.String(),
			fmt.Sprintf("a command ends after %s s unless it asks for more, at most %s s", decimal(out.CommandSeconds), decimal(out.MaxSeconds)),
			fmt.Sprintf("your sandboxes: %d, of which %d run, with %s together", total, out.Sandboxes[string(sandbox.Running)], out.InUse),
			fmt.Sprintf("network: %s; as_user root: %v; no budget: nothing is metered", strings.Join(out.Networks, ", "), out.Root),
		},
		structured: out,
	}, nil
}

// limits asks what holds, and how much is in use.
func (c *call) limits(ctx context.Context) (limitsShape, error) {
	i, err := c.engine.Info(ctx, c.caller)
	if err != nil {
		return limitsShape{}, err
	}
	d := i.Defaults
	out := limitsShape{
		Default:        amounts{d.Limits.CPU, d.Limits.MemoryMB, d.Limits.DiskMB, d.Limits.Pids},
		Least:          amounts{sandbox.MinCPU, sandbox.MinMemoryMB, sandbox.MinDiskMB, sandbox.MinPids},
		Most:           amounts{sandbox.MaxCPU, sandbox.MaxMemoryMB, sandbox.MaxDiskMB, sandbox.MaxPids},
		Networks:       networks(c.engine),
		CommandSeconds: d.CommandTimeout.Seconds(), MaxSeconds: d.MaxCommandTimeout.Seconds(), Root: !d.ForbidRoot,
		Sandboxes: make(map[string]int),
	}
	for state, n := range i.Counts {
		if n > 0 {
			out.Sandboxes[string(state)] = n
		}
	}
	running, err := c.engine.List(ctx, c.caller, store.SandboxQuery{States: []sandbox.State{sandbox.Running}, Limit: store.MaxPage})
	if err != nil {
		return limitsShape{}, err
	}
	for _, s := range running.Items {
		out.InUse.CPUs += s.Limits.CPU
		out.InUse.MemoryMB += s.Limits.MemoryMB
		out.InUse.DiskMB += s.Limits.DiskMB
		out.InUse.Pids += s.Limits.Pids
	}
	return out, nil
}

func networks(e Engine) []string {
	var out []string
	for _, m := range e.Networks() {
		out = append(out, string(m))
	}
	return out
}
