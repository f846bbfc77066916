// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// Bounds of timeout_seconds.
const (
	leastLife = 10
	mostLife  = 3600
)

// amount is a named amount of CPU and memory.
type amount struct {
	CPU      float64 `json:"cpu"`
	MemoryMB int     `json:"memory_mb"`
}

// amounts are those of the sizes by name.
func amounts(sizes sandbox.Sizes) map[string]amount {
	out := make(map[string]amount)
	for _, s := range sizes {
		out[s.Name] = amount{s.CPU, s.MemoryMB}
	}
	return out
}

func create(sizes []string) toolset.Tool {
	return toolset.Tool{
		Name: "create_sandbox", Title: "Create a sandbox",
		About: "Create a sandbox: an isolated, ephemeral Linux environment. Answers with its id and status.",
		Params: []toolset.Param{
			{Name: "template", Kind: toolset.Text, Required: true, Field: "image", About: "What it runs on: python (Debian with Python, its common libraries and Node), another name for that, or a template of your project (a name or tmpl_…); image_versions in the answer says what is inside.", Aliases: []string{"image"}},
			{Name: "size", Kind: toolset.Text, Enum: sizes, About: "CPU and memory; get_sandbox_limits says how much. Default: the server's."},
			{Name: "network", Kind: toolset.Text, Enum: []string{"off", "restricted", "open"}, About: "off (default), restricted to what the server's operator lists, or open."},
			{Name: "timeout_seconds", Kind: toolset.Integer, Min: leastLife, Max: mostLife, About: "Terminate it after so many seconds, whatever it does. Default: never."},
			{Name: "env", Kind: toolset.Texts, About: "Environment variables of every command.", Aliases: []string{"env_vars", "environment"}},
			{Name: "metadata", Kind: toolset.Texts, About: "Labels of your own.", Aliases: []string{"labels"}},
			{Name: "region", Kind: toolset.Text, About: "Left out: where there is room."},
		},
		Example: `{"template": "python"}`,
		Run:     makeSandbox,
	}
}

func makeSandbox(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := engine.CreateRequest{
		Env: a.Env("env"), Metadata: a.Env("metadata"),
		TTL: time.Duration(a.Number("timeout_seconds", 0)) * time.Second,
	}
	asked := a.Text("template")
	if r.Image = asked; c.Templates != nil {
		r.Image, r.Template = "", &sandbox.Template{Asked: asked}
	}
	if a.Has("template") && asked == "" {
		a.Add("template", "is empty")
	}
	if size := a.Text("size"); size != "" {
		if s, err := c.SizeTable().Named(size); err == nil { // else it is none of the enumeration
			r.Limits = sandbox.Limits{CPU: s.CPU, MemoryMB: s.MemoryMB}
		}
	}
	if mode := a.Text("network"); mode != "" {
		r.Network = &sandbox.NetworkPolicy{Mode: sandbox.NetworkMode(mode)}
	}
	region := a.Text("region")
	if err := a.Err(); err != nil {
		return nil, err
	}
	if region != "" && region != toolset.OnlyRegion {
		// Where data is kept is a promise, and not a preference.
		return nil, fault.New(fault.Unsupported, "region: there is no %s; this server is in one place, which is called %s", toolset.Quote(toolset.Clip(region)), toolset.OnlyRegion).
			WithRemedy("leave region out, if it does not matter where the sandbox is")
	}
	s, _, err := c.Sandboxes.Create(ctx, c.Caller, r)
	if err != nil {
		return nil, err
	}
	c.Ref = string(s.ID)
	out := shapeOf(c, s)
	out.Versions = c.Versions.Of(ctx, c.Caller, s.ImageDigest)
	out.ImageNote = image.Note(s.AskedImage, s.Image, out.Versions)
	return handle(out)
}

// shape is a sandbox as clients expect it [inf]; variables are not repeated,
// which may be secrets.
type shape struct {
	ID        string            `json:"id"`
	Status    string            `json:"status"`
	Template  string            `json:"template"` // as it was asked for
	Image     string            `json:"image"`
	Versions  map[string]string `json:"image_versions,omitempty"` // what is inside the image
	ImageNote string            `json:"image_note,omitempty"`     // where template says something else
	Size      string            `json:"size,omitempty"`           // where the amounts are those of one
	CPU       float64           `json:"cpu"`
	MemoryMB  int               `json:"memory_mb"`
	DiskMB    int               `json:"disk_mb"`
	Network   string            `json:"network"`
	Region    string            `json:"region"`
	Metadata  map[string]string `json:"metadata"`
	CreatedAt string            `json:"created_at"`
	ExpiresAt *string           `json:"expires_at"` // null: never
}

func shapeOf(c *toolset.Call, s *sandbox.Sandbox) shape {
	out := shape{
		ID: string(s.ID), Status: string(s.State), Template: s.AskedImage, Image: s.Image, CPU: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB,
		DiskMB: s.Limits.DiskMB, Size: c.SizeTable().Of(s.Limits), Network: string(s.Network.Mode), Region: toolset.OnlyRegion, Metadata: s.Metadata,
		CreatedAt: toolset.TimeText(s.CreatedAt),
	}
	if t := s.Template; t != nil && t.Name != "" {
		out.Template = t.Name
	}
	if out.Template == "" {
		out.Template = s.Image
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	if at := toolset.TimeText(s.ExpiresAt); at != "" {
		out.ExpiresAt = &at
	}
	return out
}

// answer shows a sandbox.
func answer(c *toolset.Call, s *sandbox.Sandbox) (*toolset.Answer, error) {
	return handle(shapeOf(c, s))
}

// handle is a JSON answer that is structured content, too.
func handle(v any) (*toolset.Answer, error) {
	out, err := toolset.JSONAnswer(v, "")
	if err == nil {
		out.Structured = v
	}
	return out, err
}
