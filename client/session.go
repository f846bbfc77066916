// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	v1 "sandpit.dev/api/v1"
)

// Sessions lists the people who are signed in by this client's token, oldest first; with the scope admin those of the
// project, with server:admin all.
func (c *Client) Sessions(ctx context.Context) ([]v1.Session, error) {
	var out v1.SessionList
	if _, err := c.call(ctx, request{method: "GET", path: "/sessions"}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// EndSession ends a session, with the streams and terminals that it has open.
func (c *Client) EndSession(ctx context.Context, id string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: "/sessions/" + seg(id)}, nil)
	return err
}

// CreateSessionCode makes a code that signs a browser in, once and within a minute, with the rights of this client's token.
func (c *Client) CreateSessionCode(ctx context.Context) (*v1.SessionCode, error) {
	out := new(v1.SessionCode)
	if _, err := c.call(ctx, request{method: "POST", path: "/session-codes"}, out); err != nil {
		return nil, err
	}
	return out, nil
}
