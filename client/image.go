// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"time"

	v1 "sandpit.dev/api/v1"
)

// Image returns all that is known of an image: its builds on disk, and who uses each.
func (c *Client) Image(ctx context.Context, name string) (*v1.ImageDetails, error) {
	out := new(v1.ImageDetails)
	if _, err := c.call(ctx, request{method: "GET", path: "/images/" + seg(name)}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// RebuildImage is BuildImage, also where there is a current build. That one stays in use meanwhile.
func (c *Client) RebuildImage(ctx context.Context, name string, wait time.Duration) (*v1.Image, error) {
	q := url.Values{"wait_seconds": {strconv.Itoa(int(wait / time.Second))}}
	out := new(v1.Image)
	if _, err := c.call(ctx, request{method: "POST", path: "/images/" + seg(name) + "/build", query: q, body: v1.BuildImage{Rebuild: true}}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ImageLog opens the output of the last build of an image, or of the one that goes on; with follow it ends
// when that does. The caller closes it.
func (c *Client) ImageLog(ctx context.Context, name string, follow bool) (io.ReadCloser, error) {
	q := make(url.Values)
	if follow {
		q.Set("follow", "true")
	}
	resp, err := c.do(ctx, request{method: "GET", path: "/images/" + seg(name) + "/log", query: q})
	if err != nil {
		return nil, err
	}
	return &archive{resp.Body, "log", "ask again"}, nil
}

// DeleteImage is what is to be deleted of an image.
type DeleteImage struct {
	Digest string // of one build; empty: all
	Force  bool   // also the sandboxes and snapshots that use it, and a build that goes on
	DryRun bool   // only say what it would be
}

// DeleteImage deletes the builds of an image. While somebody uses one it is fault.Conflict, unless
// it is asked for by force.
func (c *Client) DeleteImage(ctx context.Context, name string, d DeleteImage) (*v1.ImageDeletion, error) {
	q := make(url.Values)
	set(q, "digest", d.Digest)
	if d.Force {
		q.Set("force", "true")
	}
	if d.DryRun {
		q.Set("dry_run", "true")
	}
	out := new(v1.ImageDeletion)
	if _, err := c.call(ctx, request{method: "DELETE", path: "/images/" + seg(name), query: q}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// PruneImages removes the builds of images that nobody uses and new sandboxes do not get.
func (c *Client) PruneImages(ctx context.Context, p v1.PruneImages) (*v1.ImagesPruned, error) {
	out := new(v1.ImagesPruned)
	if _, err := c.call(ctx, request{method: "POST", path: "/images/prune", body: p}, out); err != nil {
		return nil, err
	}
	return out, nil
}
