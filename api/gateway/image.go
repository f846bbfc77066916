// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"
	"strings"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/image"
)

type imageShape struct {
	ID          string `json:"id"` // its name
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Description string `json:"description"`
	Status      string `json:"status"`   // missing, building, ready or failed
	Template    string `json:"template"` // the entry of the catalogue that it is built of; empty for one that others made
	IsDefault   bool   `json:"is_default"`
	SizeBytes   int64  `json:"size_bytes"`
}

type imageList struct {
	Items []imageShape `json:"items"`
}

func (a *API) listImages(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (imageList, error) {
	all, err := a.Images.Images(ctx, c.Caller)
	if err != nil {
		return imageList{}, err
	}
	out := imageList{Items: make([]imageShape, 0, len(all))}
	for _, s := range all {
		item := imageShape{ID: s.Name, Name: s.Name, DisplayName: s.Name, Description: s.Title, Status: string(s.State), IsDefault: s.Default, SizeBytes: s.Image.SizeBytes}
		if inCatalogue(s) {
			item.Template = s.Name
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// inCatalogue reports whether an image is an entry of the catalogue, not one that others made.
func inCatalogue(s image.Status) bool { return len(s.Packages) > 0 || s.Base != "" }

type templateShape struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"display_name"`
	Description string   `json:"description"`
	BaseImage   string   `json:"base_image"` // empty for a system of its own
	Packages    []string `json:"packages"`
	Count       int      `json:"package_count"`
	Imported    bool     `json:"imported"` // it is built here
}

type templateList struct {
	Templates []templateShape `json:"templates"`
}

func (a *API) listImageTemplates(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (templateList, error) {
	all, err := a.Images.Images(ctx, c.Caller)
	if err != nil {
		return templateList{}, err
	}
	out := templateList{Templates: []templateShape{}}
	for _, s := range all {
		if !inCatalogue(s) {
			continue
		}
		t := templateShape{Name: s.Name, DisplayName: s.Name, Description: s.Title, BaseImage: s.Base, Packages: []string{}, Count: len(s.Packages), Imported: s.State == image.Ready}
		for _, p := range s.Packages {
			t.Packages = append(t.Packages, p.Name)
		}
		out.Templates = append(out.Templates, t)
	}
	return out, nil
}

// category is the packages that one tool installs: the SDK makes a list of the answer's categories.
type category struct {
	Name     string   `json:"name"` // apt, npm or pip
	Packages []string `json:"packages"`
}

type categoryList struct {
	Categories []category `json:"categories"`
}

func (a *API) listImagePackages(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (categoryList, error) {
	all, err := a.Images.Images(ctx, c.Caller)
	if err != nil {
		return categoryList{}, err
	}
	by := make(map[string][]string)
	for _, s := range all {
		for _, p := range s.Packages {
			by[p.Tool] = append(by[p.Tool], p.Name)
		}
	}
	out := categoryList{Categories: []category{}}
	for tool, names := range by {
		slices.Sort(names)
		out.Categories = append(out.Categories, category{tool, slices.Compact(names)})
	}
	slices.SortFunc(out.Categories, func(a, b category) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
