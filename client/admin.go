// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	v1 "sandpit.dev/api/v1"
)

// Whoami returns what the server knows of this client's token: its project, its scopes and when it
// expires. It needs no scope; a token that the server does not take is fault.Unauthenticated.
func (c *Client) Whoami(ctx context.Context) (*v1.Whoami, error) {
	out := new(v1.Whoami)
	if _, err := c.call(ctx, request{method: "GET", path: "/whoami"}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Tokens lists the bearer tokens of a project; empty: of all that the caller
// manages.
func (c *Client) Tokens(ctx context.Context, project string) ([]v1.Token, error) {
	var out v1.TokenList
	q := make(url.Values)
	set(q, "project", project)
	if _, err := c.call(ctx, request{method: "GET", path: "/tokens", query: q}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// CreateToken makes a bearer token. Its secret is in the answer and is never
// shown again.
func (c *Client) CreateToken(ctx context.Context, r v1.CreateToken) (*v1.CreatedToken, error) {
	out := new(v1.CreatedToken)
	if _, err := c.begin(ctx, request{method: "POST", path: "/tokens", body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// RotateToken gives a token, by its id or its name, another secret; project as in Tokens. Those
// before it stay valid for a while, see [v1.RotateToken].
func (c *Client) RotateToken(ctx context.Context, project, idOrName string, r v1.RotateToken) (*v1.RotatedToken, error) {
	q := make(url.Values)
	set(q, "project", project)
	out := new(v1.RotatedToken)
	if _, err := c.call(ctx, request{method: "POST", path: "/tokens/" + seg(idOrName) + "/rotate", query: q, body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// CreateSandboxToken makes a token that is good for one sandbox. It is in the answer and is never shown again.
func (c *Client) CreateSandboxToken(ctx context.Context, ref string, r v1.CreateSandboxToken) (*v1.SandboxToken, error) {
	out := new(v1.SandboxToken)
	if _, err := c.call(ctx, request{method: "POST", path: of(ref, "/tokens"), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// RotateSandboxTokens ends all tokens of a sandbox, with what they have open. Tokens that are made from then on are
// valid.
func (c *Client) RotateSandboxTokens(ctx context.Context, ref string) error {
	_, err := c.call(ctx, request{method: "POST", path: of(ref, "/tokens/rotate")}, nil)
	return err
}

// DeleteToken ends a token, by its id or its name; project as in Tokens.
func (c *Client) DeleteToken(ctx context.Context, project, idOrName string) error {
	q := make(url.Values)
	set(q, "project", project)
	_, err := c.call(ctx, request{method: "DELETE", path: "/tokens/" + seg(idOrName), query: q}, nil)
	return err
}

// Images lists the images that sandboxes can run on, with their state.
func (c *Client) Images(ctx context.Context) ([]v1.Image, error) {
	var out v1.ImageList
	if _, err := c.call(ctx, request{method: "GET", path: "/images"}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// BuildImage starts building an image unless it is built, and waits at most wait for it. The
// build goes on afterwards; Images reports its progress.
func (c *Client) BuildImage(ctx context.Context, name string, wait time.Duration) (*v1.Image, error) {
	q := url.Values{"wait_seconds": {strconv.Itoa(int(wait / time.Second))}}
	out := new(v1.Image)
	if _, err := c.call(ctx, request{method: "POST", path: "/images/" + seg(name) + "/build", query: q}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Info returns what the server is and can do.
func (c *Client) Info(ctx context.Context) (*v1.Info, error) {
	out := new(v1.Info)
	if _, err := c.call(ctx, request{method: "GET", path: "/info"}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Limits returns what a sandbox may ask for.
func (c *Client) Limits(ctx context.Context) (*v1.SandboxLimits, error) {
	out := new(v1.SandboxLimits)
	if _, err := c.call(ctx, request{method: "GET", path: "/limits"}, out); err != nil {
		return nil, err
	}
	return out, nil
}
