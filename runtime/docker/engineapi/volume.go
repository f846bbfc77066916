// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"context"
	"net/http"
	"net/url"
)

// Volume is a named directory that an Engine keeps.
type Volume struct {
	Name    string
	Driver  string
	Labels  map[string]string
	Options map[string]string `json:",omitempty"` // of the driver's; one that has any may be a directory of the host
}

// CreateVolume makes a volume of the Engine's own driver. One that exists is returned as it is.
func (c *Client) CreateVolume(ctx context.Context, name string, labels map[string]string) (Volume, error) {
	var out Volume
	return out, c.call(ctx, request{
		method: http.MethodPost, path: "/volumes/create", in: Volume{Name: name, Driver: "local", Labels: labels}, within: callTimeout,
	}, &out)
}

// InspectVolume returns a volume by name; a missing one is fault.NotFound.
func (c *Client) InspectVolume(ctx context.Context, name string) (Volume, error) {
	var out Volume
	return out, c.call(ctx, request{method: http.MethodGet, path: "/volumes/" + url.PathEscape(name), within: callTimeout}, &out)
}

// ListVolumes returns all volumes with these labels: name, or name=value.
func (c *Client) ListVolumes(ctx context.Context, labels ...string) ([]Volume, error) {
	var out struct{ Volumes []Volume }
	return out.Volumes, c.call(ctx, request{
		method: http.MethodGet, path: "/volumes", query: url.Values{"filters": {labelled(labels)}}, within: callTimeout,
	}, &out)
}

// RemoveVolume deletes a volume that no container has; else it is fault.Conflict.
func (c *Client) RemoveVolume(ctx context.Context, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/volumes/" + url.PathEscape(name), within: workTimeout}, nil)
}
