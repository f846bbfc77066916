// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"

	"sandpit.dev/sandbox"
)

func getSandboxLimits() tool {
	return tool{
		name: "get_sandbox_limits", title: "What a sandbox may have", readOnly: true, idempotent: true,
		about:   "What a sandbox gets by default and may ask for at most, how long commands may take, and how many sandboxes you have.",
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
	i, err := c.engine.Info(ctx, c.caller)
	if err != nil {
		return nil, err
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
	total := 0
	for state, n := range i.Counts {
		if n > 0 {
			out.Sandboxes[string(state)] = n
			total += n
		}
	}
	return &answer{
		verdict: fmt.Sprintf("a sandbox gets %s", out.Default),
		lines: []string{
			"at most: " + out.Most.String(),
			fmt.Sprintf("a command ends after %s s unless it asks for more, at most %s s", decimal(out.CommandSeconds), decimal(out.MaxSeconds)),
			fmt.Sprintf("your sandboxes: %d, of which %d run; network: off; nothing is metered", total, i.Counts[sandbox.Running]),
		},
		structured: out,
	}, nil
}

func networks(e Engine) []string {
	var out []string
	for _, m := range e.Networks() {
		out = append(out, string(m))
	}
	return out
}
