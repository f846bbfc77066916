// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"maps"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/images"
	"sandpit.dev/fault"
)

func keeperOf(c *toolset.Call) (service.Keeper, error) {
	if c.Keeper == nil {
		return nil, fault.New(fault.Unsupported, "this server does not administer images")
	}
	return c.Keeper, nil
}

func paramImage() toolset.Param {
	return toolset.Param{Name: "image", Kind: toolset.Text, Required: true, About: "Its name.", Aliases: []string{"name", "template"}}
}

// buildShape is a build of an image as the tools show it.
type buildShape struct {
	Name      string `json:"name,omitempty"`
	Digest    string `json:"digest"`
	SizeBytes int64  `json:"size_bytes"`
	Current   bool   `json:"current,omitempty"`
	BuiltAt   string `json:"built_at,omitempty"`
	Sandboxes int    `json:"sandboxes,omitempty"` // of all projects
	Snapshots int    `json:"snapshots,omitempty"`
	Pooled    int    `json:"ready_in_pools,omitempty"`
}

func counts(out *buildShape, u *images.Use) {
	out.Sandboxes, out.Snapshots = len(u.Sandboxes), len(u.Snapshots)
	for n := range maps.Values(u.Pools) {
		out.Pooled += n
	}
}

func (b *buildShape) line() string {
	line := b.Digest + " · " + toolset.BytesText(b.SizeBytes)
	if b.Name != "" {
		line = b.Name + " " + line
	}
	if b.Current {
		line += " · new sandboxes get it"
	}
	return line + fmt.Sprintf(" · used by %s, %s, %d ready in pools", toolset.Counted(b.Sandboxes, "sandbox", "sandboxes"), toolset.Counted(b.Snapshots, "snapshot", "snapshots"), b.Pooled)
}

// inspectedImage is the structured answer of inspect_image.
type inspectedImage struct {
	imageShape
	Start  []string     `json:"start,omitempty"`
	Builds []buildShape `json:"builds"`
}

func inspectImage() toolset.Tool {
	return toolset.Tool{
		Name: "inspect_image", Title: "Inspect an image", ReadOnly: true, Idempotent: true,
		About:   "See an image's builds on disk, and how many use each.",
		Params:  []toolset.Param{paramImage()},
		Example: `{"image": "python"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			name := c.Args.Text("image")
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			k, err := keeperOf(c)
			if err != nil {
				return nil, err
			}
			d, err := k.Inspect(ctx, c.Caller, name)
			if err != nil {
				return nil, err
			}
			out := inspectedImage{imageShape: imageShapeOf(&d.Status), Start: d.Start, Builds: []buildShape{}}
			ans := &toolset.Answer{Verdict: out.imageShape.line()}
			if len(d.Start) > 0 {
				ans.Lines = append(ans.Lines, "its start command: "+toolset.PrintablePath(toolset.Clip(fmt.Sprintf("%q", d.Start))))
			}
			for i := range d.Builds {
				b := &d.Builds[i]
				sh := buildShape{Digest: b.Digest, SizeBytes: b.SizeBytes, Current: b.Current, BuiltAt: toolset.TimeText(b.Created)}
				counts(&sh, &b.Use)
				out.Builds = append(out.Builds, sh)
				ans.Lines = append(ans.Lines, sh.line())
			}
			ans.Structured = out
			return ans, nil
		},
	}
}

// deletedImage is the structured answer of delete_image.
type deletedImage struct {
	Name       string   `json:"name"`
	DryRun     bool     `json:"dry_run"`
	Digests    []string `json:"digests"`
	FreedBytes int64    `json:"freed_bytes"`
	Sandboxes  int      `json:"sandboxes"`
	Snapshots  int      `json:"snapshots"`
}

func deleteImage() toolset.Tool {
	return toolset.Tool{
		Name: "delete_image", Title: "Delete an image", Destructive: true, Idempotent: true,
		About: "Delete an image's builds, which nobody uses. Needs the scope server:admin.",
		Params: []toolset.Param{
			paramImage(),
			{Name: "digest", Kind: toolset.Text, About: "Only this build."},
			{Name: "force", Kind: toolset.Boolean, About: "With the sandboxes and snapshots that use it."},
			{Name: "dry_run", Kind: toolset.Boolean, About: "Only say what it would be."},
		},
		Example: `{"image": "python", "dry_run": true}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			a := c.Args
			d := images.Deletion{Name: a.Text("image"), Digest: a.Text("digest"), Force: a.Bool("force", false), DryRun: a.Bool("dry_run", false)}
			if a.Has("digest") && d.Digest == "" {
				a.Add("digest", "is empty; leave it out to delete all builds")
			}
			if err := a.Err(); err != nil {
				return nil, err
			}
			k, err := keeperOf(c)
			if err != nil {
				return nil, err
			}
			got, err := k.Delete(ctx, c.Caller, d)
			if err != nil {
				return nil, err
			}
			out := deletedImage{got.Name, d.DryRun, []string{}, got.Bytes, len(got.Use.Sandboxes), len(got.Use.Snapshots)}
			verb, with := "deleted ", "deleted with it: "
			if d.DryRun {
				verb, with = "would delete ", "in use by, and deleted with force: "
			}
			ans := &toolset.Answer{Verdict: verb + got.Name + ": " + toolset.BytesText(got.Bytes) + " of " + toolset.Counted(len(got.Builds), "build", "builds")}
			for _, b := range got.Builds {
				out.Digests = append(out.Digests, b.Digest)
			}
			if out.Sandboxes+out.Snapshots > 0 {
				ans.Lines = append(ans.Lines, with+toolset.Counted(out.Sandboxes, "sandbox", "sandboxes")+", "+toolset.Counted(out.Snapshots, "snapshot", "snapshots"))
			}
			ans.Structured = out
			return ans, nil
		},
	}
}

// prunedImages is the structured answer of prune_images.
type prunedImages struct {
	DryRun     bool         `json:"dry_run"`
	Builds     []buildShape `json:"builds"`
	FreedBytes int64        `json:"freed_bytes"`
	KeptBytes  int64        `json:"kept_bytes"`
}

func pruneImages() toolset.Tool {
	return toolset.Tool{
		Name: "prune_images", Title: "Prune images", Destructive: true, Idempotent: true,
		About: "Remove builds of images that nobody uses and new sandboxes do not get. Needs the scope server:admin.",
		Params: []toolset.Param{
			{Name: "cache", Kind: toolset.Boolean, About: "Also what builds downloaded."},
			{Name: "dry_run", Kind: toolset.Boolean, About: "Only say what it would be."},
		},
		Example: `{"dry_run": true}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			p := images.Pruning{Cache: c.Args.Bool("cache", false), DryRun: c.Args.Bool("dry_run", false)}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			k, err := keeperOf(c)
			if err != nil {
				return nil, err
			}
			got, err := k.Prune(ctx, c.Caller, p)
			if err != nil {
				return nil, err
			}
			out := prunedImages{p.DryRun, []buildShape{}, got.Bytes, got.Kept}
			verb := "freed "
			if p.DryRun {
				verb = "would free "
			}
			ans := &toolset.Answer{Verdict: verb + toolset.BytesText(got.Bytes) + "; the builds that stay take " + toolset.BytesText(got.Kept)}
			for _, b := range got.Builds {
				out.Builds = append(out.Builds, buildShape{Name: b.Name, Digest: b.Digest, SizeBytes: b.SizeBytes})
				ans.Lines = append(ans.Lines, b.Name+" "+b.Digest+" · "+toolset.BytesText(b.SizeBytes))
			}
			ans.Structured = out
			return ans, nil
		},
	}
}
