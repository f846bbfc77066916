// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/image"
)

// Images as the clients of the MCP Gateway ask for them.

func (a *API) listSandboxImages(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.SandboxImageList, error) {
	images, err := a.Images.Images(ctx, c.Caller)
	if err != nil {
		return v1.SandboxImageList{}, err
	}
	out := v1.SandboxImageList{Items: make([]v1.SandboxImage, 0, len(images))}
	for _, s := range images {
		item := v1.SandboxImage{
			ID: s.Name, Name: s.Name, DisplayName: s.Name, Description: s.Title, Status: string(s.State), IsDefault: s.Default, SizeBytes: s.Image.SizeBytes,
		}
		if inCatalogue(s) {
			item.Template = s.Name
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

func (a *API) listSandboxImageTemplates(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.SandboxImageTemplateList, error) {
	images, err := a.Images.Images(ctx, c.Caller)
	if err != nil {
		return v1.SandboxImageTemplateList{}, err
	}
	out := v1.SandboxImageTemplateList{Templates: []v1.SandboxImageTemplate{}}
	for _, s := range images {
		if !inCatalogue(s) {
			continue
		}
		t := v1.SandboxImageTemplate{
			Name: s.Name, DisplayName: s.Name, Description: s.Title, BaseImage: s.Base, Packages: make([]string, 0, len(s.Packages)),
			PackageCount: len(s.Packages), Imported: s.State == image.Ready,
		}
		for _, p := range s.Packages {
			t.Packages = append(t.Packages, p.Name)
		}
		out.Templates = append(out.Templates, t)
	}
	return out, nil
}

func (a *API) listSandboxImagePackages(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.SandboxImagePackages, error) {
	images, err := a.Images.Images(ctx, c.Caller)
	if err != nil {
		return v1.SandboxImagePackages{}, err
	}
	out := v1.SandboxImagePackages{Categories: make(map[string][]string)}
	for _, s := range images {
		for _, p := range s.Packages {
			out.Categories[p.Tool] = append(out.Categories[p.Tool], p.Name)
		}
	}
	for tool, names := range out.Categories {
		slices.Sort(names)
		out.Categories[tool] = slices.Compact(names)
	}
	return out, nil
}

// inCatalogue reports whether an image is an entry of the catalogue, not one that others made.
func inCatalogue(s image.Status) bool { return len(s.Packages) > 0 || s.Base != "" }
