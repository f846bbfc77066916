// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"strings"

	v1 "sandpit.dev/api/v1"
)

// FleetQuery selects sandboxes of all projects. Zero fields select all.
type FleetQuery struct {
	Project  string
	Status   []string // any of these states
	Exclude  []string // none of these states
	Image    string   // a part of the image's name
	Search   string   // a part of the id, key or image, letter case ignored
	Metadata map[string]string
	Limit    int // most of one page, 1 to 500; zero: the server's default
}

// Fleet returns all sandboxes of all projects that match, newest first, and fetches each page when it is needed. It needs the server's own
// administrator's token, as BulkStop and BulkDestroy do. The sequence ends after an error.
func (c *Client) Fleet(ctx context.Context, q FleetQuery) iter.Seq2[*v1.Sandbox, error] {
	v := make(url.Values)
	set(v, "project", q.Project)
	set(v, "status", strings.Join(q.Status, ","))
	set(v, "exclude_status", strings.Join(q.Exclude, ","))
	set(v, "image", q.Image)
	set(v, "search", q.Search)
	for name, value := range q.Metadata {
		v.Set("metadata."+name, value)
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return all("", func(cursor string) ([]v1.Sandbox, *string, error) {
		set(v, "cursor", cursor)
		var p v1.SandboxPage
		if _, err := c.call(ctx, request{method: "GET", path: "/admin/sandboxes", query: v}, &p); err != nil {
			return nil, nil, err
		}
		return p.Items, p.NextCursor, nil
	})
}

// BulkStop stops the sandboxes that are selected; a failure does not spare the others.
func (c *Client) BulkStop(ctx context.Context, which v1.BulkSandboxes) (*v1.BulkResult, error) {
	r := new(v1.BulkResult)
	_, err := c.call(ctx, request{method: "POST", path: "/admin/sandboxes/bulk-stop", body: which}, r)
	return r, err
}

// BulkDestroy deletes the sandboxes that are selected; a failure does not spare the others.
func (c *Client) BulkDestroy(ctx context.Context, which v1.BulkSandboxes) (*v1.BulkResult, error) {
	r := new(v1.BulkResult)
	_, err := c.call(ctx, request{method: "POST", path: "/admin/sandboxes/bulk-destroy", body: which}, r)
	return r, err
}
