// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
)

// Backup opens a backup of the whole server. It needs the token of the server's own
// administrator. The backup contains all secrets and tokens. It is complete when Read returned
// io.EOF; any other error means that it was cut short. The caller closes it.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	resp, err := c.do(ctx, request{method: "POST", path: "/backups"})
	if err != nil {
		return nil, err
	}
	return &archive{resp.Body, "backup", "make it"}, nil
}
