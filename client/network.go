// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/url"

	v1 "sandpit.dev/api/v1"
)

// NetworkLog returns what a sandbox may reach, what it tried to reach, and what was refused and
// why. It does not count as use of the sandbox. [Client.Update] changes what the sandbox may
// reach, with immediate effect.
func (c *Client) NetworkLog(ctx context.Context, sandbox string) (*v1.NetworkLog, error) {
	out := new(v1.NetworkLog)
	if _, err := c.call(ctx, request{method: "GET", path: "/sandboxes/" + seg(sandbox) + "/network"}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Presets returns the names for lists of hosts that a policy may name, and what each stands for in a
// sandbox of an image; "" is the default one.
func (c *Client) Presets(ctx context.Context, image string) (*v1.PresetList, error) {
	query := url.Values{}
	if image != "" {
		query.Set("image", image)
	}
	out := new(v1.PresetList)
	if _, err := c.call(ctx, request{method: "GET", path: "/network/presets", query: query}, out); err != nil {
		return nil, err
	}
	return out, nil
}
