// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	v1 "sandpit.dev/api/v1"
)

// A secret belongs to a sandbox, which is named first; or, where that is "", to the
// project, whose secrets only its administrators change.

// SetSecret creates or replaces a secret. Commands and connections that begin afterwards have it.
// Its value cannot be read back.
func (c *Client) SetSecret(ctx context.Context, ref, name string, r v1.SetSecret) (*v1.Secret, error) {
	return c.secret(ctx, request{method: "PUT", path: secretsOf(ref) + "/" + seg(name), body: r})
}

// Secrets returns the secrets of the project, or those that hold for a sandbox: its own and
// its project's.
func (c *Client) Secrets(ctx context.Context, ref string) ([]v1.Secret, error) {
	var out v1.SecretList
	if _, err := c.call(ctx, request{method: "GET", path: secretsOf(ref)}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// Secret returns the secret of a name from the list that Secrets returns.
func (c *Client) Secret(ctx context.Context, ref, name string) (*v1.Secret, error) {
	return c.secret(ctx, request{method: "GET", path: secretsOf(ref) + "/" + seg(name)})
}

// DeleteSecret deletes a secret of the project, or a sandbox's own. Running commands keep it.
func (c *Client) DeleteSecret(ctx context.Context, ref, name string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: secretsOf(ref) + "/" + seg(name)}, nil)
	return err
}

func secretsOf(ref string) string {
	if ref == "" {
		return "/secrets"
	}
	return "/sandboxes/" + seg(ref) + "/secrets"
}

func (c *Client) secret(ctx context.Context, r request) (*v1.Secret, error) {
	s := new(v1.Secret)
	if _, err := c.call(ctx, r, s); err != nil {
		return nil, err
	}
	return s, nil
}
