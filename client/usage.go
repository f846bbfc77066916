// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/url"
	"strings"
	"time"

	v1 "sandpit.dev/api/v1"
)

// UsageQuery selects what was used. Zero fields select all of the caller's project, as one sum.
type UsageQuery struct {
	Project      string // another one, or "*" for all, for the server's own administrator's token
	Token        string
	Since, Until time.Time // hours
	By           []string  // project, token, day or hour
}

// Usage returns what was used, deleted sandboxes included.
func (c *Client) Usage(ctx context.Context, q UsageQuery) (*v1.UsageReport, error) {
	v := make(url.Values)
	set(v, "project", q.Project)
	set(v, "token", q.Token)
	set(v, "by", strings.Join(q.By, ","))
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	r := new(v1.UsageReport)
	_, err := c.call(ctx, request{method: "GET", path: "/usage", query: v}, r)
	return r, err
}
