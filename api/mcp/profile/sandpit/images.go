// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/image"
)

// imageShape is an image as the tools show it.
type imageShape struct {
	Name      string            `json:"name"`
	Aliases   []string          `json:"aliases,omitempty"`
	Untrue    []string          `json:"untrue_aliases,omitempty"` // those that say something else than what is inside
	About     string            `json:"about,omitempty"`
	Status    string            `json:"status"`
	Default   bool              `json:"default,omitempty"`
	SizeBytes int64             `json:"size_bytes,omitempty"`
	Versions  map[string]string `json:"versions,omitempty"` // what is inside
	Progress  float64           `json:"progress,omitempty"` // of a build: 0 to 1
	Stage     string            `json:"stage,omitempty"`
	Error     string            `json:"error,omitempty"` // of a build that failed
}

func imageShapeOf(s *image.Status) imageShape {
	notes := s.Notes()
	out := imageShape{Name: s.Name, Default: s.Default, Untrue: slices.Sorted(maps.Keys(notes)), About: s.Title, Status: string(s.State), SizeBytes: s.Image.SizeBytes, Versions: s.Image.Versions}
	for _, a := range s.Aliases {
		if notes[a] == "" {
			out.Aliases = append(out.Aliases, a)
		}
	}
	switch s.State {
	case image.Building:
		out.Stage, out.Progress = s.Stage, s.Progress
	case image.Failed:
		out.Stage = s.Stage
		if s.Err != nil {
			out.Error = fault.As(s.Err).Message
		}
	}
	return out
}

func (i *imageShape) line() string {
	line := i.Name
	if i.Default {
		line += " (the default)"
	}
	line += " · " + i.Status
	switch {
	case i.Error != "":
		line += ": " + toolset.Clip(toolset.PrintablePath(i.Error))
	case i.Progress > 0:
		line += fmt.Sprintf(" · %d %%", int(i.Progress*100))
	}
	if i.About != "" {
		line += " · " + i.About
	}
	if len(i.Versions) > 0 {
		var inside []string
		for name, v := range i.Versions {
			inside = append(inside, name+" "+v)
		}
		slices.Sort(inside)
		line += " · " + named(inside)
	}
	if len(i.Aliases) > 0 {
		line += " · also " + strings.Join(i.Aliases, ", ")
	}
	if len(i.Untrue) > 0 {
		line += " · and, though they say something else, " + strings.Join(i.Untrue, ", ")
	}
	return line
}

// imageList is the structured answer of list_images.
type imageList struct {
	Images []imageShape `json:"images"`
}

func listImages() toolset.Tool {
	return toolset.Tool{
		Name: "list_images", Title: "List images", ReadOnly: true, Idempotent: true,
		About:   "List what sandboxes can run on: the image argument of create_sandbox.",
		Example: `{}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			all, err := c.Images.Images(ctx, c.Caller)
			if err != nil {
				return nil, err
			}
			all = slices.DeleteFunc(all, func(s image.Status) bool { return !s.Allowed })
			out := imageList{Images: make([]imageShape, 0, len(all))}
			ans := &toolset.Answer{Verdict: toolset.Counted(len(all), "image", "images")}
			for i := range all {
				sh := imageShapeOf(&all[i])
				out.Images = append(out.Images, sh)
				ans.Lines = append(ans.Lines, sh.line())
			}
			ans.Structured = out
			return ans, nil
		},
	}
}

func buildImage() toolset.Tool {
	return toolset.Tool{
		Name: "build_image", Title: "Build an image", Idempotent: true, OpenWorld: true,
		About: "Build an image of the catalogue, unless it is built. The build goes on whether one waits or not; list_images shows how far it is. Needs a token with the scope admin.",
		Params: []toolset.Param{
			{Name: "image", Kind: toolset.Text, Required: true, About: "Its name, from list_images.", Aliases: []string{"name", "template"}},
			{Name: "rebuild", Kind: toolset.Boolean, About: "Also where there is a current build; needs the scope server:admin."},
			paramWait(toolset.MostWait.Seconds(), "For its end; default 45."),
		},
		Example: `{"image": "python"}`,
		Run:     build,
	}
}

func build(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	name, wait := c.Args.Text("image"), toolset.Seconds(c.Args.Number("wait_seconds", toolset.DefaultWait.Seconds()))
	do := c.Images.BuildImage
	if c.Args.Bool("rebuild", false) {
		k, err := keeperOf(c)
		if err != nil {
			return nil, err
		}
		do = k.Rebuild
	}
	if err := c.Args.Err(); err != nil {
		return nil, err
	}
	here, cancel := context.WithTimeout(ctx, max(wait, shortBuild))
	defer cancel()
	s, err := do(here, c.Caller, name)
	if err != nil {
		if ctx.Err() != nil || here.Err() == nil {
			return nil, err
		}
		all, lerr := c.Images.Images(ctx, c.Caller)
		at := slices.IndexFunc(all, func(s image.Status) bool { return s.Name == name || slices.Contains(s.Aliases, name) })
		if lerr != nil || at < 0 {
			return nil, err
		}
		sh := imageShapeOf(&all[at])
		return &toolset.Answer{Verdict: "the image is being built: " + sh.line(), Lines: []string{"next: list_images shows how far it is"}, Structured: sh}, nil
	}
	sh := imageShapeOf(&s)
	return &toolset.Answer{Verdict: "the image is built: " + sh.line(), Structured: sh}, nil
}

// shortBuild is what an answer waits for at least, so that a build that fails at once,
// or has nothing to do, says so.
const shortBuild = 250 * time.Millisecond
