// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/fleet"
)

// Fleet is the sandboxes of all projects, for who runs the server.
type Fleet interface {
	List(ctx context.Context, c access.Caller, r engine.SandboxesRequest) (engine.Page, error)
	Stop(ctx context.Context, c access.Caller, s fleet.Selection) (fleet.Result, error)
	Delete(ctx context.Context, c access.Caller, s fleet.Selection) (fleet.Result, error)
}
