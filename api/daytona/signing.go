// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"

	"sandpit.dev/api/httpapi"
)

// signingKey answers with the key by which clients sign addresses of a sandbox's files, see toolbox.API.Signed.
func (a *API) signingKey(ctx context.Context, c *httpapi.Call, in *byRef) (string, error) {
	k, err := a.Files.Key(ctx, c.Caller, in.Ref)
	if err != nil {
		return "", err
	}
	return a.files.SandboxKey(k.Sandbox, k.Salt), nil
}

func (a *API) rotateSigningKey(ctx context.Context, c *httpapi.Call, in *byRef) (string, error) {
	k, err := a.Files.ExchangeKey(ctx, c.Caller, in.Ref)
	if err != nil {
		return "", err
	}
	return a.files.SandboxKey(k.Sandbox, k.Salt), nil
}
