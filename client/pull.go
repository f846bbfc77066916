// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	v1 "sandpit.dev/api/v1"
)

// PullImage starts bringing an image from its registry, and waits at most wait for it. The pull goes on
// afterwards; Images reports its progress.
func (c *Client) PullImage(ctx context.Context, reference string, wait time.Duration) (*v1.Image, error) {
	q := url.Values{"wait_seconds": {strconv.Itoa(int(wait / time.Second))}}
	out := new(v1.Image)
	if _, err := c.call(ctx, request{method: "POST", path: "/images/pull", query: q, body: v1.PullImage{Reference: reference}}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// SaveImage returns an image as an OCI archive, and its digest. Whoever reads it to its end has all of it.
func (c *Client) SaveImage(ctx context.Context, name string) (io.ReadCloser, string, error) {
	resp, err := c.do(ctx, request{method: "GET", path: "/images/" + seg(name) + "/archive"})
	if err != nil {
		return nil, "", err
	}
	return &archive{resp.Body, "archive", "save it"}, resp.Header.Get(v1.ImageDigestHeader), nil
}

// ImportImageOptions configure the import of images. The zero value works.
type ImportImageOptions struct {
	Name string // a reference for the image, as debian:12-slim; empty: the archive's own
	Size int64  // of the archive in bytes, if it is known: it lets the server refuse early. Zero or negative: unknown
}

// ImportImages makes images of an archive, which docker save wrote, or which is a tar of an OCI layout.
// If it fails, layers that were finished stay for the next try.
func (c *Client) ImportImages(ctx context.Context, r io.Reader, o ImportImageOptions) ([]v1.Image, error) {
	q := make(url.Values)
	set(q, "name", o.Name)
	size := o.Size
	if size <= 0 {
		size = -1
	}
	var out v1.ImageList
	if _, err := c.call(ctx, request{method: "POST", path: "/images/import", query: q, raw: r, size: size, header: http.Header{"Content-Type": {v1.ImageType}}}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}
