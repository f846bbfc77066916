// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	v1 "sandpit.dev/api/v1"
)

// Projects returns the projects that the token sees: its own, or, with the server's own administrator's token, all.
func (c *Client) Projects(ctx context.Context) ([]v1.Project, error) {
	var out v1.ProjectList
	_, err := c.call(ctx, request{method: "GET", path: "/projects"}, &out)
	return out.Items, err
}

// Project returns one project.
func (c *Client) Project(ctx context.Context, name string) (*v1.Project, error) {
	return c.project(ctx, request{method: "GET", path: "/projects/" + seg(name)})
}

// CreateProject makes a project. It needs the server's own administrator's token, as UpdateProject and DeleteProject do.
func (c *Client) CreateProject(ctx context.Context, r v1.CreateProject) (*v1.Project, error) {
	return c.project(ctx, request{method: "POST", path: "/projects", body: r})
}

// UpdateProject changes a project's quotas.
func (c *Client) UpdateProject(ctx context.Context, name string, r v1.UpdateProject) (*v1.Project, error) {
	return c.project(ctx, request{method: "PATCH", path: "/projects/" + seg(name), body: r})
}

// DeleteProject deletes a project that is empty.
func (c *Client) DeleteProject(ctx context.Context, name string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: "/projects/" + seg(name)}, nil)
	return err
}

func (c *Client) project(ctx context.Context, r request) (*v1.Project, error) {
	out := new(v1.Project)
	if _, err := c.call(ctx, r, out); err != nil {
		return nil, err
	}
	return out, nil
}
