// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

type forkSandbox struct {
	Ref  string `path:"id"`
	Body wire.Name
}

func (a *API) forkSandbox(ctx context.Context, c *httpapi.Call, in *forkSandbox) (*sandbox.Sandbox, error) {
	all, err := a.Snapshots.Fork(ctx, c.Caller, in.Ref, engine.ForkRequest{Key: given(in.Body.Name)})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// touch is a use of a sandbox, and nothing else.
func (a *API) touch(ctx context.Context, c *httpapi.Call, in *byRef) (httpapi.None, error) {
	_, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
	return httpapi.None{}, err
}
