// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	v1 "sandpit.dev/api/v1"
)

// NetworkLog tells what a sandbox may reach, what it tried to, and what was refused
// with the reason. Looking is no use of the sandbox. What it may reach is changed by
// [Client.Update], and holds at once.
func (c *Client) NetworkLog(ctx context.Context, sandbox string) (*v1.NetworkLog, error) {
	out := new(v1.NetworkLog)
	if _, err := c.call(ctx, request{method: "GET", path: "/sandboxes/" + seg(sandbox) + "/network"}, out); err != nil {
		return nil, err
	}
	return out, nil
}
