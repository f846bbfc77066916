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

// AskNetwork asks that a sandbox may reach more. What no operator's rule allows waits for a person.
func (c *Client) AskNetwork(ctx context.Context, sandbox string, r v1.AskNetwork) (*v1.NetworkRequest, error) {
	return c.networkRequest(ctx, request{method: "POST", path: "/sandboxes/" + seg(sandbox) + "/network/requests", body: r})
}

// NetworkRequests returns what was asked for and waits for an answer: of one sandbox, or "" for all.
func (c *Client) NetworkRequests(ctx context.Context, sandbox string) ([]v1.NetworkRequest, error) {
	query := url.Values{}
	if sandbox != "" {
		query.Set("sandbox", sandbox)
	}
	var out v1.NetworkRequestList
	if _, err := c.call(ctx, request{method: "GET", path: "/network/requests", query: query}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// GrantNetwork lets a sandbox reach what was asked for.
func (c *Client) GrantNetwork(ctx context.Context, id string) (*v1.NetworkRequest, error) {
	return c.networkRequest(ctx, request{method: "POST", path: "/network/requests/" + seg(id) + "/grant"})
}

// DenyNetwork forgets what was asked for.
func (c *Client) DenyNetwork(ctx context.Context, id string) (*v1.NetworkRequest, error) {
	return c.networkRequest(ctx, request{method: "POST", path: "/network/requests/" + seg(id) + "/deny"})
}

func (c *Client) networkRequest(ctx context.Context, r request) (*v1.NetworkRequest, error) {
	out := new(v1.NetworkRequest)
	if _, err := c.call(ctx, r, out); err != nil {
		return nil, err
	}
	return out, nil
}
