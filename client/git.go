// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	v1 "sandpit.dev/api/v1"
)

// GitClone clones a repository into a directory of a sandbox, and returns when it is there. Credentials are
// told to the repository's server alone.
func (c *Client) GitClone(ctx context.Context, ref string, r v1.GitClone) (*v1.GitCloned, error) {
	out := new(v1.GitCloned)
	if _, err := c.call(ctx, request{method: "POST", path: of(ref, "/git/clone"), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}
