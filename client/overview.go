// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/url"

	v1 "sandpit.dev/api/v1"
)

// Overview returns what the caller's project is at: sandboxes by state, what they use, and what happened in the last hour.
// With allProjects it is that of the whole server, for the server's own administrator's token, which also gets the host's.
func (c *Client) Overview(ctx context.Context, allProjects bool) (*v1.Overview, error) {
	v := make(url.Values)
	if allProjects {
		v.Set("all_projects", "true")
	}
	o := new(v1.Overview)
	_, err := c.call(ctx, request{method: "GET", path: "/overview", query: v}, o)
	return o, err
}
