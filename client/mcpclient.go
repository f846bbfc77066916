// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/url"

	v1 "sandpit.dev/api/v1"
)

// ClientQuery says how clients are to be told of the server. The zero value is the server's default.
type ClientQuery struct {
	Profile string // the set of tools
	Written bool   // files have the token itself, also of clients that could read a variable
}

// Clients lists the programs that speak MCP and are known, and how each is told of the server.
func (c *Client) Clients(ctx context.Context, q ClientQuery) (*v1.ClientSetupList, error) {
	query := url.Values{}
	if q.Profile != "" {
		query.Set("profile", q.Profile)
	}
	if q.Written {
		query.Set("written", "true")
	}
	out := new(v1.ClientSetupList)
	if _, err := c.call(ctx, request{method: "GET", path: "/clients", query: query}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// SeenClients lists the programs that called by MCP since the server began, who called last first: those of this client's
// token, with the scope admin those of the project, with server:admin all.
func (c *Client) SeenClients(ctx context.Context) ([]v1.SeenClient, error) {
	var out v1.SeenClientList
	if _, err := c.call(ctx, request{method: "GET", path: "/clients/seen"}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}
