// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of timeout_seconds.
const (
	orkestrLeastLife = 10
	orkestrMostLife  = 3600
)

// onlyRegion is where all sandboxes are.
const onlyRegion = "local"

// orkestrSize is a named amount of CPU and memory.
type orkestrSize struct {
	CPU      float64 `json:"cpu"`
	MemoryMB int     `json:"memory_mb"`
}

// orkestrSizes are by name. What they come to at Orkestr is not published [inf]: these
// are the caps of its three plans.
func orkestrSizes() map[string]orkestrSize {
	return map[string]orkestrSize{"small": {0.5, 512}, "medium": {2, 4096}, "large": {4, 8192}}
}

func orkestrCreate() tool {
	return tool{
		name: "create_sandbox", title: "Create a sandbox",
		about: "Create a sandbox: an isolated, ephemeral Linux environment. Answers with its id and status.",
		params: []param{
			{name: "template", kind: text, required: true, field: "image", about: "python-3.12 (pip and common libraries), python-3.12-bare, node-22 or ubuntu-24.04.", aliases: []string{"image"}},
			{name: "size", kind: text, enum: []string{"small", "medium", "large"}, about: "CPU and memory; get_sandbox_limits says how much. Default: the server's."},
			{name: "network", kind: text, enum: []string{"off", "restricted", "open"}, about: "off (default), restricted to what the server's operator lists, or open."},
			{name: "timeout_seconds", kind: integer, min: orkestrLeastLife, max: orkestrMostLife, about: "Terminate it after so many seconds, whatever it does. Default: never."},
			{name: "env", kind: texts, about: "Environment variables of every command.", aliases: []string{"env_vars", "environment"}},
			{name: "metadata", kind: texts, about: "Labels of your own.", aliases: []string{"labels"}},
			{name: "region", kind: text, about: "Left out: where there is room."},
		},
		example: `{"template": "python-3.12"}`,
		run:     orkestrMake,
	}
}

func orkestrMake(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	r := engine.CreateRequest{
		Image: a.text("template"), Env: a.env("env"), Metadata: a.env("metadata"),
		TTL: time.Duration(a.number("timeout_seconds", 0)) * time.Second,
	}
	if a.has("template") && r.Image == "" {
		a.add("template", "is empty")
	}
	if size := a.text("size"); size != "" {
		s := orkestrSizes()[size]
		r.Limits = sandbox.Limits{CPU: s.CPU, MemoryMB: s.MemoryMB}
	}
	if mode := a.text("network"); mode != "" {
		r.Network = &sandbox.NetworkPolicy{Mode: sandbox.NetworkMode(mode)}
	}
	region := a.text("region")
	if err := a.err(); err != nil {
		return nil, err
	}
	if region != "" && region != onlyRegion {
		// Where data is kept is a promise, and not a preference.
		return nil, fault.New(fault.Unsupported, "region: there is no %s; this server is in one place, which is called %s", quote(clip(region)), onlyRegion).
			WithRemedy("leave region out, if it does not matter where the sandbox is")
	}
	s, _, err := c.engine.Create(ctx, c.Caller, r)
	if err != nil {
		return nil, err
	}
	c.ref = string(s.ID)
	return orkestrAnswer(s)
}

// orkestrShape is a sandbox as clients expect it [inf]; variables are not repeated,
// which may be secrets.
type orkestrShape struct {
	ID        string            `json:"id"`
	Status    string            `json:"status"`
	Template  string            `json:"template"`
	Size      string            `json:"size,omitempty"` // where the amounts are those of one
	CPU       float64           `json:"cpu"`
	MemoryMB  int               `json:"memory_mb"`
	DiskMB    int               `json:"disk_mb"`
	Network   string            `json:"network"`
	Region    string            `json:"region"`
	Metadata  map[string]string `json:"metadata"`
	CreatedAt string            `json:"created_at"`
	ExpiresAt *string           `json:"expires_at"` // null: never
}

func orkestrShapeOf(s *sandbox.Sandbox) orkestrShape {
	out := orkestrShape{
		ID: string(s.ID), Status: string(s.State), Template: s.AskedImage, CPU: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB,
		DiskMB: s.Limits.DiskMB, Network: string(s.Network.Mode), Region: onlyRegion, Metadata: s.Metadata,
		CreatedAt: timeText(s.CreatedAt),
	}
	for name, size := range orkestrSizes() {
		if size == (orkestrSize{s.Limits.CPU, s.Limits.MemoryMB}) {
			out.Size = name
		}
	}
	if out.Template == "" {
		out.Template = s.Image
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	if at := timeText(s.ExpiresAt); at != "" {
		out.ExpiresAt = &at
	}
	return out
}

// orkestrAnswer shows a sandbox.
func orkestrAnswer(s *sandbox.Sandbox) (*answer, error) { return orkestrHandle(orkestrShapeOf(s)) }

// orkestrHandle is a JSON answer that is structured content, too.
func orkestrHandle(v any) (*answer, error) {
	out, err := inJSON(v, "")
	if err == nil {
		out.structured = v
	}
	return out, err
}
