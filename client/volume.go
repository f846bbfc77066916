// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	v1 "sandpit.dev/api/v1"
)

// A volume is named by its name, or by its id.

// CreateVolume makes an empty volume. A name that the project already uses is an error.
func (c *Client) CreateVolume(ctx context.Context, r v1.CreateVolume) (*v1.Volume, error) {
	out := new(v1.Volume)
	if _, err := c.begin(ctx, request{method: "POST", path: "/volumes", body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Volumes returns all volumes of the project, with their usage and the sandboxes that mount them.
func (c *Client) Volumes(ctx context.Context) ([]v1.Volume, error) {
	var out v1.VolumeList
	if _, err := c.call(ctx, request{method: "GET", path: "/volumes"}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// Volume returns a volume.
func (c *Client) Volume(ctx context.Context, volume string) (*v1.Volume, error) {
	return c.volume(ctx, request{method: "GET", path: "/volumes/" + seg(volume)})
}

// UpdateVolume changes a volume.
func (c *Client) UpdateVolume(ctx context.Context, volume string, r v1.UpdateVolume) (*v1.Volume, error) {
	return c.volume(ctx, request{method: "PATCH", path: "/volumes/" + seg(volume), body: r})
}

// DeleteVolume deletes a volume and its content. It is an error while a sandbox mounts it.
func (c *Client) DeleteVolume(ctx context.Context, volume string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: "/volumes/" + seg(volume)}, nil)
	return err
}

func (c *Client) volume(ctx context.Context, r request) (*v1.Volume, error) {
	v := new(v1.Volume)
	if _, err := c.call(ctx, r, v); err != nil {
		return nil, err
	}
	return v, nil
}
