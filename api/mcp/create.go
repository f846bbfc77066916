// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"strings"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// maxMinutes is the longest clock.
const maxMinutes = float64(sandbox.MaxClock / time.Minute)

func createSandbox() tool {
	return tool{
		name: "create_sandbox", title: "Create a sandbox", idempotent: true,
		about: "Create an isolated Linux sandbox (Python 3, Node 22, git, bash), or get the one that has this name, started if it was stopped. " +
			"Files under /workspace stay until it is deleted. It stops when idle and starts again by itself when used. " +
			"Lifetime: until delete_sandbox, or ttl_minutes if given. run_command makes a default sandbox by itself: use this only for another name, image or size.",
		params: []param{
			{name: "name", kind: text, field: "key", about: "Your own name for it, 1 to 255 characters without /. The same name gives the same sandbox. Left out: a new one with an id only.", aliases: []string{"key", "session_key", "identifier", "sandbox"}},
			{name: "image", kind: text, about: "Default: python.", aliases: []string{"template"}},
			{name: "memory_mb", kind: integer, min: sandbox.MinMemoryMB, max: sandbox.MaxMemoryMB, about: "Memory in MiB, default 512.", aliases: []string{"memory"}},
			{name: "cpus", kind: number, min: sandbox.MinCPU, max: sandbox.MaxCPU, field: "cpu_cores", about: "CPU cores, default 1.", aliases: []string{"cpu", "cpu_cores"}},
			{name: "disk_mb", kind: integer, min: sandbox.MinDiskMB, max: sandbox.MaxDiskMB, about: "Disk in MiB, default 1024.", aliases: []string{"disk"}},
			{name: "network", kind: text, about: "off (default), restricted (only allow_domains) or open.", aliases: []string{"network_enabled"}},
			{name: "allow_domains", kind: text, about: "Names that it may reach (network restricted), separated by commas; *.example.org is all below it.", aliases: []string{"domains"}},
			paramVolumes("Volumes to mount, like data:/workspace/data, with commas; :ro behind it for reading only."),
			{name: "from_snapshot", kind: text, field: "from", about: "Begin with this snapshot's files: its id, or SANDBOX/NAME.", aliases: []string{"snapshot"}},
			{name: "env", kind: texts, about: "Environment variables of every command in it.", aliases: []string{"env_vars", "environment"}},
			{name: "ttl_minutes", kind: number, min: 1, max: maxMinutes, field: "timeout_seconds", about: "Delete it after this, files included. Default: never.", aliases: []string{"ttl"}},
			{name: "idle_minutes", kind: number, min: 0, max: maxMinutes, field: "idle_timeout_seconds", about: "Stop it when unused for so long, files kept. Default 30; 0: never."},
		},
		example: `{"name": "my-project"}`,
		run:     create,
	}
}

func create(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	r := engine.CreateRequest{
		Key: a.text("name"), Image: a.text("image"), Env: a.env("env"),
		Limits: sandbox.Limits{
			CPU: a.number("cpus", 0), MemoryMB: int(a.number("memory_mb", 0)), DiskMB: int(a.number("disk_mb", 0)),
		},
		TTL: minutes(a.number("ttl_minutes", 0)), From: a.text("from_snapshot"), Mounts: mounts(a),
	}
	r.Network = network(a)
	if a.has("idle_minutes") {
		r.IdleTimeout = new(minutes(a.number("idle_minutes", 0)))
	}
	if a.has("name") && r.Key == "" {
		a.add("name", "is empty; leave it out for a sandbox without a name")
	}
	if a.has("from_snapshot") && r.From == "" {
		a.add("from_snapshot", "is empty; leave it out for an empty disk")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	s, created, err := c.engine.Create(ctx, c.Caller, r)
	if err != nil {
		return nil, err
	}
	c.ref = s.Ref()
	shown := c.shape(ctx, s)
	verdict := "created sandbox " + s.Ref()
	if !created {
		verdict = "sandbox " + s.Ref() + " exists and is " + string(s.State)
	}
	out := &answer{verdict: verdict, lines: shown.lines(), structured: createdShape{created, shown}}
	if !created && (r.Limits != sandbox.Limits{} || r.Env != nil || r.TTL != 0 || r.IdleTimeout != nil || r.Network != nil || r.Mounts != nil || r.From != "") {
		note := "it existed already and was left as it is: limits, network, env, volumes, snapshot and clocks of this call were not applied"
		if c.has(GroupManage) {
			note += "; update_sandbox changes them, but for the snapshot"
		}
		out.notes = append(out.notes, note)
	}
	return out, nil
}

func minutes(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }

// createdShape is the handle that create_sandbox gives.
type createdShape struct {
	Created bool `json:"created"`
	shape
}

// network reads what the sandbox may reach; nil: nothing was said. Not every tool has
// all of these arguments.
func network(a *args) *sandbox.NetworkPolicy {
	p := &sandbox.NetworkPolicy{}
	each := func(name string, add func(string) error) {
		for one := range strings.SplitSeq(a.text(name), ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			if err := add(one); err != nil {
				a.add(name, "%s", fault.As(err).Fields[0].Message)
			}
		}
	}
	each("allow_domains", func(s string) error { p.AllowDomains = append(p.AllowDomains, s); return nil })
	each("allow_addresses", func(s string) error {
		c, err := sandbox.ParseCIDR("allow_addresses", s)
		p.AllowCIDRs = append(p.AllowCIDRs, c)
		return err
	})
	each("allow_ports", func(s string) error {
		r, err := sandbox.ParsePorts("allow_ports", s)
		p.AllowPorts = append(p.AllowPorts, r)
		return err
	})
	switch mode := a.text("network"); mode {
	case "":
		if len(p.AllowDomains)+len(p.AllowCIDRs)+len(p.AllowPorts) == 0 {
			return nil
		}
		p.Mode = sandbox.NetworkRestricted
	case "false":
		p.Mode = sandbox.NetworkOff
	case "true":
		p.Mode = sandbox.NetworkOpen
	default:
		p.Mode = sandbox.NetworkMode(mode)
	}
	return p
}
