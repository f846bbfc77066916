// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/tokens"
	"sandpit.dev/fault"
)

type createSandboxToken struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.CreateSandboxToken
}

func (a *API) createSandboxToken(ctx context.Context, c *idempotency.Call, in *createSandboxToken) (v1.SandboxToken, error) {
	r, err := a.Request(&in.Body)
	if err != nil {
		return v1.SandboxToken{}, err
	}
	return a.Make(ctx, c.Caller, in.Ref, r)
}

// Request reads what is asked of a token for a sandbox.
func (a *API) Request(b *v1.CreateSandboxToken) (tokens.Request, error) {
	r := tokens.Request{Name: b.Name, Scopes: b.Scopes}
	if a.Sandboxes == nil {
		return r, fault.New(fault.Unsupported, "this server makes no tokens for single sandboxes")
	}
	if s := b.ExpiresInSeconds; s != nil {
		if most := int64(tokens.MaxExpiry / time.Second); *s < 1 || *s > most {
			return r, fault.InvalidField("expires_in_seconds", "%d is outside 1 to %d seconds", *s, most)
		}
		r.Expires = time.Duration(*s) * time.Second
	}
	_, err := r.Check(time.Now())
	return r, err
}

// Make makes a token for a sandbox.
func (a *API) Make(ctx context.Context, c access.Caller, ref string, r tokens.Request) (v1.SandboxToken, error) {
	t, secret, err := a.Sandboxes.Create(ctx, c, ref, r)
	if err != nil {
		return v1.SandboxToken{}, err
	}
	return v1.SandboxToken{
		Secret: secret.Reveal(), SandboxID: string(t.Sandbox), Name: t.Name, Scopes: scopesOf(t.Scopes), ExpiresAt: shape.TimeOrNull(t.ExpiresAt),
	}, nil
}

type rotateSandboxTokens struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
}

func (a *API) rotateSandboxTokens(ctx context.Context, c *idempotency.Call, in *rotateSandboxTokens) (httpapi.None, error) {
	if a.Sandboxes == nil {
		return httpapi.None{}, fault.New(fault.Unsupported, "this server makes no tokens for single sandboxes")
	}
	return httpapi.None{}, a.Sandboxes.Rotate(ctx, c.Caller, in.Ref)
}
