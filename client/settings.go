// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	v1 "sandpit.dev/api/v1"
)

// Settings returns what can be set without a restart of the server. It needs the server's own administrator's token, as
// UpdateSettings does.
func (c *Client) Settings(ctx context.Context) ([]v1.Setting, error) {
	var out v1.SettingList
	_, err := c.call(ctx, request{method: "GET", path: "/settings"}, &out)
	return out.Items, err
}

// Configuration returns what the server started with, without what is secret. It needs the server's own administrator's token.
func (c *Client) Configuration(ctx context.Context) ([]v1.ConfiguredValue, error) {
	var out v1.Configuration
	_, err := c.call(ctx, request{method: "GET", path: "/settings/configuration"}, &out)
	return out.Items, err
}

// UpdateSettings changes settings, all of them or none, and returns all that there are.
func (c *Client) UpdateSettings(ctx context.Context, to v1.UpdateSettings) ([]v1.Setting, error) {
	var out v1.SettingList
	_, err := c.call(ctx, request{method: "PATCH", path: "/settings", body: to}, &out)
	return out.Items, err
}
