// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	v1 "sandpit.dev/api/v1"
)

// A template is named by its name, by NAME@VERSION or by its id.

// CreateTemplate adds a version of a template. One that is the same as the newest of its name is that one,
// and added is false. With steps it is building: see AwaitTemplate.
func (c *Client) CreateTemplate(ctx context.Context, r v1.CreateTemplate) (t *v1.Template, added bool, err error) {
	t = new(v1.Template)
	status, err := c.call(ctx, request{method: "POST", path: "/templates", body: r}, t)
	if err != nil {
		return nil, false, err
	}
	return t, status != http.StatusOK, nil
}

// Templates returns the versions of the project and of the server: of a name, or of all where that is empty.
func (c *Client) Templates(ctx context.Context, name string) ([]v1.Template, error) {
	q := make(url.Values)
	set(q, "name", name)
	var out v1.TemplateList
	if _, err := c.call(ctx, request{method: "GET", path: "/templates", query: q}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// Template returns a version of a template: of a name the newest that is ready.
func (c *Client) Template(ctx context.Context, ref string) (*v1.Template, error) {
	t := new(v1.Template)
	if _, err := c.call(ctx, request{method: "GET", path: "/templates/" + seg(ref)}, t); err != nil {
		return nil, err
	}
	return t, nil
}

// templateLook is how long AwaitTemplate waits from one look to the next.
const templateLook = 300 * time.Millisecond

// AwaitTemplate waits until a version is no longer building, and returns it. That it failed is no error.
func (c *Client) AwaitTemplate(ctx context.Context, ref string) (*v1.Template, error) {
	tick := time.NewTicker(templateLook)
	defer tick.Stop()
	for {
		t, err := c.Template(ctx, ref)
		if err != nil || t.Status != "building" {
			return t, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TemplateLog opens what the build of a template has written; with follow it ends when that does. The caller closes it.
func (c *Client) TemplateLog(ctx context.Context, ref string, follow bool) (io.ReadCloser, error) {
	q := make(url.Values)
	if follow {
		q.Set("follow", "true")
	}
	resp, err := c.do(ctx, request{method: "GET", path: "/templates/" + seg(ref) + "/log", query: q})
	if err != nil {
		return nil, err
	}
	return &archive{resp.Body, "log", "ask again"}, nil
}

// UpdateTemplate changes which template is a default, or what is active.
func (c *Client) UpdateTemplate(ctx context.Context, ref string, r v1.UpdateTemplate) (*v1.Template, error) {
	t := new(v1.Template)
	if _, err := c.call(ctx, request{method: "PATCH", path: "/templates/" + seg(ref), body: r}, t); err != nil {
		return nil, err
	}
	return t, nil
}

// DeleteTemplate deletes a version, or by a name all of its versions. Sandboxes that were made of it stay.
func (c *Client) DeleteTemplate(ctx context.Context, ref string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: "/templates/" + seg(ref)}, nil)
	return err
}

// ImagePool returns the pools of an image.
func (c *Client) ImagePool(ctx context.Context, name string) (*v1.ImagePools, error) {
	out := new(v1.ImagePools)
	if _, err := c.call(ctx, request{method: "GET", path: "/images/" + seg(name) + "/pool"}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// UpdateImagePool changes a pool of an image, or makes one.
func (c *Client) UpdateImagePool(ctx context.Context, name string, r v1.UpdateImagePool) (*v1.ImagePools, error) {
	out := new(v1.ImagePools)
	if _, err := c.call(ctx, request{method: "PATCH", path: "/images/" + seg(name) + "/pool", body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}
