// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
)

// Backup opens a backup of the whole server, which has to be asked by its own administrator's
// token. The backup has all secrets and tokens. It is whole when Read gave io.EOF; one that breaks
// off gives another error. Close it.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	resp, err := c.do(ctx, request{method: "POST", path: "/backups"})
	if err != nil {
		return nil, err
	}
	return &archive{resp.Body, "backup", "make it"}, nil
}
