// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/engine"
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
		TTL: minutes(a.number("ttl_minutes", 0)),
	}
	r.Network = network(a)
	if a.has("idle_minutes") {
		r.IdleTimeout = new(minutes(a.number("idle_minutes", 0)))
	}
	if a.has("name") && r.Key == "" {
		a.add("name", "is empty; leave it out for a sandbox without a name")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	s, created, err := c.engine.Create(ctx, c.caller, r)
	if err != nil {
		return nil, err
	}
	c.ref = s.Ref()
	shown := shapeOf(s)
	verdict := "created sandbox " + s.Ref()
	if !created {
		verdict = "sandbox " + s.Ref() + " exists and is " + string(s.State)
	}
	out := &answer{verdict: verdict, lines: shown.lines(), structured: createdShape{created, shown}}
	if !created && (r.Limits != sandbox.Limits{} || r.Env != nil || r.TTL != 0 || r.IdleTimeout != nil) {
		out.notes = append(out.notes, "it existed already and was left as it is: limits, env and clocks of this call were not applied")
	}
	return out, nil
}

func minutes(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }

// createdShape is the handle that create_sandbox gives.
type createdShape struct {
	Created bool `json:"created"`
	shape
}

// shape is a sandbox as the tools show it.
type shape struct {
	ID          string  `json:"id"`
	Name        string  `json:"name,omitempty"`
	State       string  `json:"state"`
	StopCause   string  `json:"stop_cause,omitempty"`
	Image       string  `json:"image"`
	Workdir     string  `json:"workdir"`
	Network     string  `json:"network"`
	CPUs        float64 `json:"cpus"`
	MemoryMB    int     `json:"memory_mb"`
	DiskMB      int     `json:"disk_mb"`
	IdleMinutes float64 `json:"idle_minutes,omitempty"`
	IdleAction  string  `json:"idle_action,omitempty"` // where it is not to stop
	ExpiresAt   string  `json:"expires_at,omitempty"`
	CreatedAt   string  `json:"created_at"`
	LastUsedAt  string  `json:"last_used_at,omitempty"`
}

func shapeOf(s *sandbox.Sandbox) shape {
	out := shape{
		ID: string(s.ID), Name: s.Key, State: string(s.State), StopCause: string(s.StopCause), Image: s.Image,
		Workdir: sandbox.Workspace, Network: string(s.Network.Mode),
		CPUs: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB, DiskMB: s.Limits.DiskMB, IdleMinutes: s.IdleTimeout.Minutes(),
		ExpiresAt: timeText(s.ExpiresAt), CreatedAt: timeText(s.CreatedAt), LastUsedAt: timeText(s.LastActivity),
	}
	if s.OnIdle == sandbox.IdlePause && s.IdleTimeout > 0 {
		out.IdleAction = string(s.OnIdle)
	}
	return out
}

// network reads what the sandbox may reach; nil: nothing was said.
func network(a *args) *sandbox.NetworkPolicy {
	p := &sandbox.NetworkPolicy{}
	for _, name := range strings.Split(a.text("allow_domains"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			p.AllowDomains = append(p.AllowDomains, name)
		}
	}
	switch mode := a.text("network"); mode {
	case "":
		if len(p.AllowDomains) == 0 {
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

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func (s *shape) lines() []string {
	life := "until it is deleted"
	if s.ExpiresAt != "" {
		life = "deleted at " + s.ExpiresAt
	}
	if s.IdleMinutes > 0 {
		becomes := "stops after %s idle minutes and starts again when used"
		if s.IdleAction != "" {
			becomes = "is paused after %s idle minutes and goes on when used"
		}
		life += "; " + fmt.Sprintf(becomes, decimal(s.IdleMinutes))
	}
	return []string{
		fmt.Sprintf("id %s · image %s · %s CPU, %d MiB memory, %d MiB disk · network %s", s.ID, s.Image, decimal(s.CPUs), s.MemoryMB, s.DiskMB, s.Network),
		"workdir " + s.Workdir + " · " + life,
	}
}
