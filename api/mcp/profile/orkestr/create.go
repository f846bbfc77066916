// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/orkestrterms"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
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
			{Name: "network", Kind: toolset.Text, Enum: orkestrterms.Networks(), About: "off (default), restricted to what the server's operator lists, or open."},
			{Name: "timeout_seconds", Kind: toolset.Integer, Min: orkestrterms.LeastLife, Max: float64(orkestrterms.MostLife), About: "Its end, after so many seconds, whatever it does. Default: none."},
			{Name: "on_timeout", Kind: toolset.Text, Enum: orkestrterms.Ends(), About: "At its end: terminate it (default), or pause it."},
			{Name: "auto_resume", Kind: toolset.Boolean, About: "A call resumes it while it is paused."},
			{Name: "allow_domains", Kind: toolset.Text, About: "Of restricted: names to reach by HTTPS, and those below them, with commas, instead of the operator's.", Aliases: []string{"domains"}},
			{Name: "env", Kind: toolset.Texts, About: "Environment variables of every command.", Aliases: []string{"env_vars", "environment"}},
			{Name: "metadata", Kind: toolset.Texts, About: "Labels of your own.", Aliases: []string{"labels"}},
			{Name: "volume", Kind: toolset.Text, About: "A volume for /persist, which outlives the sandbox. Made where there is none."},
			{Name: "region", Kind: toolset.Text, About: "Left out: where there is room."},
		},
		Example: `{"template": "python"}`,
		Run:     makeSandbox,
	}
}

func makeSandbox(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	say := orkestrterms.Create{
		Template: a.Text("template"), Size: a.Text("size"), Network: a.Text("network"), Domains: a.List("allow_domains"), OnTimeout: a.Text("on_timeout"),
		Env: a.Env("env"), Metadata: a.Env("metadata"), Region: given(a, "region"), Volume: given(a, "volume"),
	}
	if a.Has("template") && say.Template == "" {
		a.Add("template", "is empty")
	}
	if a.Has("auto_resume") {
		say.AutoResume = new(a.Bool("auto_resume", false))
	}
	if a.Has("timeout_seconds") {
		say.Timeout = new(int64(a.Number("timeout_seconds", 0)))
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if err := orkestrterms.Here(say.Region, toolset.OnlyRegion); err != nil {
		return nil, err
	}
	r, err := say.Request(&c.Services, "")
	if err != nil {
		return nil, err
	}
	s, err := orkestrterms.Make(ctx, &c.Services, c.Caller, r, say.Volume)
	if err != nil {
		return nil, err
	}
	c.Ref = string(s.ID)
	out := shapeOf(c, s)
	out.Versions = c.Versions.Of(ctx, c.Caller, s.ImageDigest)
	out.ImageNote = image.Note(s.AskedImage, s.Image, out.Versions)
	return handle(out)
}

// given is an argument that was given; nil: it is left out, or empty.
func given(a *toolset.Args, name string) *string {
	if text := a.Text(name); text != "" {
		return &text
	}
	return nil
}

// shape is a sandbox as clients expect it [inf]; variables are not repeated,
// which may be secrets.
type shape struct {
	orkestrterms.Sandbox
	Image     string            `json:"image"`
	Versions  map[string]string `json:"image_versions,omitempty"` // what is inside the image
	ImageNote string            `json:"image_note,omitempty"`     // where template says something else
	Size      string            `json:"size,omitempty"`           // where the amounts are those of one
	DiskMB    int               `json:"disk_mb"`
	CreatedAt string            `json:"created_at"`
	ExpiresAt *string           `json:"expires_at"` // null: never
}

func shapeOf(c *toolset.Call, s *sandbox.Sandbox) shape {
	out := shape{
		Sandbox: orkestrterms.Of(s, c.Networks, toolset.OnlyRegion), Image: s.Image, DiskMB: s.Limits.DiskMB, Size: c.SizeTable().Of(s.Limits), CreatedAt: toolset.TimeText(s.CreatedAt),
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
