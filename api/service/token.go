// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/engine/tokens"
)

// SandboxTokens makes and ends tokens that are good for one sandbox; *tokens.Service is it.
type SandboxTokens interface {
	Create(ctx context.Context, c access.Caller, ref string, r tokens.Request) (access.SandboxToken, bearer.Secret, error)
	// Rotate ends all that a sandbox has.
	Rotate(ctx context.Context, c access.Caller, ref string) error
}
