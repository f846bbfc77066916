// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func updateSandbox() tool {
	return tool{
		name: "update_sandbox", title: "Change a sandbox", destructive: true, idempotent: true,
		about: "Change a sandbox's limits, network, environment, volumes or clocks. What is left out stays. All but volumes can change while it runs; the network changes at once, for open connections too.",
		params: []param{
			{name: "sandbox", kind: text, required: true, about: "Name or id of the sandbox.", aliases: sandboxAliases()},
			{name: "memory_mb", kind: integer, min: sandbox.MinMemoryMB, max: sandbox.MaxMemoryMB, about: "Memory in MiB.", aliases: []string{"memory"}},
			{name: "cpus", kind: number, min: sandbox.MinCPU, max: sandbox.MaxCPU, field: "cpu_cores", about: "CPU cores.", aliases: []string{"cpu", "cpu_cores"}},
			{name: "disk_mb", kind: integer, min: sandbox.MinDiskMB, max: sandbox.MaxDiskMB, about: "Disk in MiB.", aliases: []string{"disk"}},
			{name: "pids", kind: integer, min: sandbox.MinPids, max: sandbox.MaxPids, about: "Processes and threads."},
			{name: "network", kind: text, about: "off, restricted (only what the allow_ arguments say) or open."},
			{name: "allow_domains", kind: text, about: "Names that it may reach, with commas; *.example.org is all below it. Replaces the list.", aliases: []string{"domains"}},
			{name: "allow_addresses", kind: text, about: "Addresses or ranges that it may reach without a name, with commas.", aliases: []string{"allow_cidrs"}},
			{name: "allow_ports", kind: text, about: "Ports of both, like 443, 8000-8010. Default: all."},
			{name: "env", kind: texts, about: "Replaces all variables, for commands that begin afterwards.", aliases: []string{"env_vars", "environment"}},
			{name: "labels", kind: texts, field: "metadata", about: "Replaces all labels.", aliases: []string{"metadata"}},
			paramVolumes("Replaces what it mounts, as in create_sandbox; empty: nothing. It must be stopped."),
			{name: "ttl_minutes", kind: number, min: 0, max: maxMinutes, field: "ttl_seconds", about: "Delete it so long from now; 0: never.", aliases: []string{"ttl"}},
			{name: "unused_ttl_minutes", kind: number, min: 0, max: maxMinutes, about: "Delete it when unused for so long; 0: never."},
			{name: "idle_minutes", kind: number, min: 0, max: maxMinutes, field: "idle_timeout_seconds", about: "Stop it when unused for so long; 0: never."},
			{name: "idle_action", kind: text, enum: []string{string(sandbox.IdleStop), string(sandbox.IdlePause)}, about: "What is done then."},
			{name: "retention_minutes", kind: number, min: 0, max: maxMinutes, field: "retention_seconds", about: "Delete it when stopped for so long; 0: never."},
			{name: "auto_delete", kind: boolean, about: "Delete it as soon as it is stopped."},
			{name: "auto_start", kind: boolean, about: "A call starts it when a clock or the host took it down."},
			{name: "auto_resume", kind: boolean, about: "A call resumes it also when it was paused by a caller."},
			{name: "checkpoints", kind: text, enum: []string{string(sandbox.CheckpointsOff), string(sandbox.CheckpointsCommand)}, about: "command: a snapshot after each command that changed files of the workspace."},
		},
		example: `{"sandbox": "my-project", "memory_mb": 1024}`,
		run:     update,
	}
}

func update(ctx context.Context, c *call) (*answer, error) {
	p := patch(c.args)
	if p == (engine.Patch{}) && len(c.args.bad) == 0 {
		c.args.add("sandbox", "is all that is given; say what shall change, for example memory_mb")
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	s, err := c.engine.Update(ctx, c.Caller, ref, p)
	if fault.Is(err, fault.State) {
		if now, gerr := c.engine.Get(ctx, c.Caller, ref); gerr == nil && now.State == sandbox.Running {
			return nil, fault.Wrap(fault.State, err, "%s", fault.As(err).Message).
				WithRemedy(`call stop_sandbox with {"sandbox": %s}, this again, and start_sandbox`, quote(ref))
		}
	}
	if err != nil {
		return nil, err
	}
	sh := c.shape(ctx, s)
	return &answer{verdict: fmt.Sprintf("changed sandbox %s, which is %s", s.Ref(), s.State), lines: sh.lines(), structured: sh}, nil
}

// patch reads what shall change; problems are kept in a.
func patch(a *args) engine.Patch {
	var p engine.Patch
	given(a, "cpus", &p.CPU, func(n string) float64 { return a.number(n, 0) })
	whole := func(n string) int { return int(a.number(n, 0)) }
	given(a, "memory_mb", &p.MemoryMB, whole)
	given(a, "disk_mb", &p.DiskMB, whole)
	given(a, "pids", &p.Pids, whole)
	clock := func(n string) time.Duration { return minutes(a.number(n, 0)) }
	given(a, "ttl_minutes", &p.TTL, clock)
	given(a, "unused_ttl_minutes", &p.SlidingTTL, clock)
	given(a, "idle_minutes", &p.IdleTimeout, clock)
	given(a, "retention_minutes", &p.Retention, clock)
	yes := func(n string) bool { return a.bool(n, false) }
	given(a, "auto_delete", &p.AutoDelete, yes)
	given(a, "auto_start", &p.AutoStart, yes)
	given(a, "auto_resume", &p.AutoResume, yes)
	given(a, "idle_action", &p.OnIdle, func(n string) sandbox.IdleAction { return sandbox.IdleAction(a.text(n)) })
	given(a, "checkpoints", &p.Checkpoints, func(n string) sandbox.Checkpoints { return sandbox.Checkpoints(a.text(n)) })
	given(a, "env", &p.Env, a.env)
	given(a, "labels", &p.Metadata, a.env)
	given(a, "volumes", &p.Mounts, func(string) []engine.MountRequest { return mounts(a) })
	p.Network = network(a)
	return p
}

// given sets what an argument says, if it is there.
func given[T any](a *args, name string, to **T, read func(string) T) {
	if a.has(name) {
		*to = new(read(name))
	}
}
