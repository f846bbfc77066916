// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func createSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "create_sandbox", Title: "Create a sandbox", Idempotent: true,
		About: "Create an isolated Linux sandbox (Python 3, Node 22, git, bash), or get the one that has this name, started if it was stopped. " +
			"Files under /workspace stay until it is deleted. It stops when idle and starts again by itself when used. " +
			"Lifetime: until delete_sandbox, or ttl_minutes if given. run_command makes a default sandbox by itself: use this only for another name, image or size.",
		Params: []toolset.Param{
			{Name: "name", Kind: toolset.Text, Field: "key", About: "Your own name for it, 1 to 255 characters without /. The same name gives the same sandbox. Left out: a new one with an id only.", Aliases: []string{"key", "session_key", "identifier", "sandbox"}},
			{Name: "image", Kind: toolset.Text, About: "Default: python.", Aliases: []string{"template"}},
			{Name: "memory_mb", Kind: toolset.Integer, Min: sandbox.MinMemoryMB, Max: sandbox.MaxMemoryMB, About: "Memory in MiB, default 512.", Aliases: []string{"memory"}},
			{Name: "cpus", Kind: toolset.Number, Min: sandbox.MinCPU, Max: sandbox.MaxCPU, Field: "cpu_cores", About: "CPU cores, default 1.", Aliases: []string{"cpu", "cpu_cores"}},
			{Name: "disk_mb", Kind: toolset.Integer, Min: sandbox.MinDiskMB, Max: sandbox.MaxDiskMB, About: "Disk in MiB, default 1024.", Aliases: []string{"disk"}},
			{Name: "network", Kind: toolset.Text, About: "off (default), restricted (only allow_domains) or open.", Aliases: []string{"network_enabled"}},
			{Name: "allow_domains", Kind: toolset.Text, About: "Names that it may reach (network restricted), separated by commas; *.example.org is all below it.", Aliases: []string{"domains"}},
			paramVolumes("Volumes to mount, like data:/workspace/data, with commas; :ro behind it for reading only."),
			{Name: "from_snapshot", Kind: toolset.Text, Field: "from", About: "Begin with this snapshot's files: its id, or SANDBOX/NAME.", Aliases: []string{"snapshot"}},
			{Name: "env", Kind: toolset.Texts, About: "Environment variables of every command in it.", Aliases: []string{"env_vars", "environment"}},
			{Name: "ttl_minutes", Kind: toolset.Number, Min: 1, Max: toolset.MaxMinutes, Field: "timeout_seconds", About: "Delete it after this, files included. Default: never.", Aliases: []string{"ttl"}},
			{Name: "idle_minutes", Kind: toolset.Number, Min: 0, Max: toolset.MaxMinutes, Field: "idle_timeout_seconds", About: "Stop it when unused for so long, files kept. Default 30; 0: never."},
		},
		Example: `{"name": "my-project"}`,
		Run:     create,
	}
}

func create(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := engine.CreateRequest{
		Key: a.Text("name"), Image: a.Text("image"), Env: a.Env("env"),
		Limits: sandbox.Limits{
			CPU: a.Number("cpus", 0), MemoryMB: int(a.Number("memory_mb", 0)), DiskMB: int(a.Number("disk_mb", 0)),
		},
		TTL: toolset.Minutes(a.Number("ttl_minutes", 0)), From: a.Text("from_snapshot"), Mounts: mounts(a),
	}
	r.Network = network(a)
	if a.Has("idle_minutes") {
		r.IdleTimeout = new(toolset.Minutes(a.Number("idle_minutes", 0)))
	}
	if a.Has("name") && r.Key == "" {
		a.Add("name", "is empty; leave it out for a sandbox without a name")
	}
	if a.Has("from_snapshot") && r.From == "" {
		a.Add("from_snapshot", "is empty; leave it out for an empty disk")
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	s, created, err := c.Engine.Create(ctx, c.Caller, r)
	if err != nil {
		return nil, err
	}
	c.Ref = s.Ref()
	shown := describe(ctx, c, s)
	verdict := "created sandbox " + s.Ref()
	if !created {
		verdict = "sandbox " + s.Ref() + " exists and is " + string(s.State)
	}
	out := &toolset.Answer{Verdict: verdict, Lines: shown.lines(), Structured: createdShape{created, shown}}
	if !created && (r.Limits != sandbox.Limits{} || r.Env != nil || r.TTL != 0 || r.IdleTimeout != nil || r.Network != nil || r.Mounts != nil || r.From != "") {
		note := "it existed already and was left as it is: limits, network, env, volumes, snapshot and clocks of this call were not applied"
		if c.Has(toolset.GroupManage) {
			note += "; update_sandbox changes them, but for the snapshot"
		}
		out.Notes = append(out.Notes, note)
	}
	return out, nil
}

// createdShape is the handle that create_sandbox gives.
type createdShape struct {
	Created bool `json:"created"`
	shape
}

// network reads what the sandbox may reach; nil: nothing was said. Not every tool has
// all of these arguments.
func network(a *toolset.Args) *sandbox.NetworkPolicy {
	p := &sandbox.NetworkPolicy{}
	each := func(name string, add func(string) error) {
		for one := range strings.SplitSeq(a.Text(name), ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			if err := add(one); err != nil {
				a.Add(name, "%s", fault.As(err).Fields[0].Message)
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
	switch mode := a.Text("network"); mode {
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
