// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/url"

	v1 "sandpit.dev/api/v1"
)

// Stats returns what a sandbox uses, and its last hour. Asking does not count as a use of it.
func (c *Client) Stats(ctx context.Context, ref string) (*v1.SandboxStats, error) {
	s := new(v1.SandboxStats)
	_, err := c.call(ctx, request{method: "GET", path: of(ref, "/stats")}, s)
	return s, err
}

// AllStats returns what each sandbox uses that is up: of the project, or with the server's own administrator's token of all.
func (c *Client) AllStats(ctx context.Context, allProjects bool) ([]v1.SandboxStats, error) {
	v := make(url.Values)
	if allProjects {
		v.Set("all_projects", "true")
	}
	var l v1.StatsList
	_, err := c.call(ctx, request{method: "GET", path: "/stats", query: v}, &l)
	return l.Items, err
}
