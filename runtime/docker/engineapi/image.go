// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Image is one that an Engine has.
type Image struct {
	ID           string `json:"Id"` // sha256:HEX, of its configuration
	RepoTags     []string
	RepoDigests  []string
	Architecture string
	OS           string `json:"Os"`
	Size         int64
	Config       Config
}

// InspectImage returns an image by reference or id; a missing one is fault.NotFound.
func (c *Client) InspectImage(ctx context.Context, ref string) (Image, error) {
	var out Image
	return out, c.call(ctx, request{method: http.MethodGet, path: image(ref, "/json"), within: callTimeout}, &out)
}

// ListImages returns all images with these labels: name, or name=value.
func (c *Client) ListImages(ctx context.Context, labels ...string) ([]Image, error) {
	var out []Image
	return out, c.call(ctx, request{
		method: http.MethodGet, path: "/images/json", query: url.Values{"filters": {labelled(labels)}}, within: callTimeout,
	}, &out)
}

// LoadImage gives an Engine an archive of an image, as docker load reads it.
func (c *Client) LoadImage(ctx context.Context, archive io.Reader) error {
	return c.work(ctx, request{
		method: http.MethodPost, path: "/images/load", query: url.Values{"quiet": {"1"}}, body: archive, kind: "application/x-tar",
	}, nil)
}

// PullImage has the Engine fetch an image of a registry, and tells how far each layer is. One that
// the registry lacks is fault.NotFound.
func (c *Client) PullImage(ctx context.Context, ref string, tell func(layer, status string, done, total int64)) error {
	return c.work(ctx, request{method: http.MethodPost, path: "/images/create", query: url.Values{"fromImage": {ref}}}, func(p progress) {
		if tell != nil {
			tell(p.ID, clip(p.Status), p.ProgressDetail.Current, p.ProgressDetail.Total)
		}
	})
}

// RemoveImage removes an image that nothing uses; else it is fault.Conflict.
func (c *Client) RemoveImage(ctx context.Context, ref string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: image(ref, ""), within: workTimeout}, nil)
}

// image returns a path of one. A reference has slashes that are part of the path.
func image(ref, verb string) string {
	parts := strings.Split(ref, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "/images/" + strings.Join(parts, "/") + verb
}
