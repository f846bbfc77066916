// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func getSandboxLimits() tool {
	return tool{
		name: "get_sandbox_limits", title: "What a sandbox may have", readOnly: true, idempotent: true,
		about: "What a sandbox gets by default and may ask for at most, how long commands may take, which networks there are, how many sandboxes you have and what they take. With sandbox: also what that one has.",
		params: []param{
			{name: "sandbox", kind: text, about: "Name or id of a sandbox.", aliases: sandboxAliases()},
		},
		example: `{"sandbox": "my-project"}`,
		run:     limits,
	}
}

// limitsShape is the structured answer. Budget is null while nothing is metered.
type limitsShape struct {
	Default        amounts        `json:"default"`
	Least          amounts        `json:"least"`
	Most           amounts        `json:"most"`
	Networks       []string       `json:"networks"` // that a sandbox can have here
	NetworkDefault string         `json:"network_default"`
	NetworkReason  string         `json:"network_reason,omitempty"` // why there are no more
	CommandSeconds float64        `json:"command_timeout_seconds"`
	MaxSeconds     float64        `json:"max_command_timeout_seconds"`
	Root           bool           `json:"root_allowed"`
	Sandboxes      map[string]int `json:"sandboxes"`
	InUse          amounts        `json:"in_use"` // what those that run may take together
	Budget         *float64       `json:"budget"`
	Server         serverShape    `json:"server"`
	Sandbox        *shape         `json:"sandbox,omitempty"` // that was asked for
}

// serverShape is what server it is, and what it cannot do on this host.
type serverShape struct {
	Version string            `json:"version"`
	Runtime string            `json:"runtime"`
	Cannot  map[string]string `json:"cannot,omitempty"` // why, by what
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
	of := c.args.text("sandbox")
	if c.args.has("sandbox") && of == "" {
		c.args.add("sandbox", "is empty; leave it out for what holds for all")
	}
	if err := c.args.err(); err != nil {
		return nil, err
	}
	out, err := c.limits(ctx)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, n := range out.Sandboxes {
		total += n
	}
	networks := "network: " + out.NetworkDefault + " unless a sandbox asks for another; it can have " + strings.Join(out.Networks, ", ")
	if len(out.Networks) == 1 {
		networks = "network: " + out.Networks[0] + ", for every sandbox"
	}
	if out.NetworkReason != "" {
		networks += " (" + out.NetworkReason + ")"
	}
	ans := &answer{
		verdict: fmt.Sprintf("a sandbox gets %s", out.Default),
		lines: []string{
			"at most: " + out.Most.String(),
			fmt.Sprintf("a command ends after %s s unless it asks for more, at most %s s", decimal(out.CommandSeconds), decimal(out.MaxSeconds)),
			fmt.Sprintf("your sandboxes: %d, of which %d run, with %s together", total, out.Sandboxes[string(sandbox.Running)], out.InUse),
			networks,
			fmt.Sprintf("as_user root: %v; no budget: nothing is metered", out.Root),
		},
	}
	if n := len(out.Server.Cannot); n > 0 {
		ans.lines = append(ans.lines, "not on this host: "+strings.Join(slices.Sorted(maps.Keys(out.Server.Cannot)), ", "))
	}
	if of != "" {
		c.ref = of
		s, err := c.engine.Get(ctx, c.Caller, of)
		if err != nil {
			return nil, err
		}
		out.Sandbox = new(c.shape(ctx, s))
		ans.lines = append(ans.lines, fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State))
		ans.lines = append(ans.lines, out.Sandbox.lines()...)
	}
	ans.structured = out
	return ans, nil
}

// limits asks what holds, and how much is in use.
func (c *call) limits(ctx context.Context) (limitsShape, error) {
	i, err := c.engine.Info(ctx, c.Caller)
	if err != nil {
		return limitsShape{}, err
	}
	d := i.Defaults
	out := limitsShape{
		Default:        amounts{d.Limits.CPU, d.Limits.MemoryMB, d.Limits.DiskMB, d.Limits.Pids},
		Least:          amounts{sandbox.MinCPU, sandbox.MinMemoryMB, sandbox.MinDiskMB, sandbox.MinPids},
		Most:           amounts{d.Most.CPU, d.Most.MemoryMB, d.Most.DiskMB, d.Most.Pids},
		NetworkDefault: string(sandbox.NetworkOff),
		Server:         serverShape{Version: i.Version, Runtime: i.Default, Cannot: make(map[string]string)},
		CommandSeconds: d.CommandTimeout.Seconds(), MaxSeconds: d.MaxCommandTimeout.Seconds(), Root: !d.ForbidRoot,
		Sandboxes: make(map[string]int),
	}
	out.Networks = networks(c.engine)
	if !slices.Contains(out.Networks, string(sandbox.NetworkOpen)) {
		out.NetworkReason = "this server's operator allows no more"
	}
	for _, r := range i.Runtimes {
		for f, why := range r.Capabilities {
			if r.Name == i.Default && why != nil {
				out.Server.Cannot[string(f)] = fault.As(why).Message
			}
		}
	}
	if why := out.Server.Cannot[string(runtime.Network)]; why != "" {
		out.Networks, out.NetworkReason = out.Networks[:1], why
	}
	for state, n := range i.Counts {
		if n > 0 {
			out.Sandboxes[string(state)] = n
		}
	}
	running, err := c.engine.List(ctx, c.Caller, store.SandboxQuery{States: []sandbox.State{sandbox.Running}, Limit: store.MaxPage})
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
