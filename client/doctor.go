// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	v1 "sandpit.dev/api/v1"
)

// Doctor returns what the server finds of itself and of its host, with a remedy for what is wrong. It repairs nothing.
// It needs the server's own administrator's token.
func (c *Client) Doctor(ctx context.Context) (*v1.DoctorReport, error) {
	r := new(v1.DoctorReport)
	_, err := c.call(ctx, request{method: "GET", path: "/doctor"}, r)
	return r, err
}
