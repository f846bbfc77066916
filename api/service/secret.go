// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/sandbox"
)

// Secrets keeps the secrets of a sandbox, or with ref empty those of the caller's project. It
// returns no values.
type Secrets interface {
	SetSecret(ctx context.Context, c access.Caller, ref string, r secrets.Request) (sandbox.Secret, error)
	Secrets(ctx context.Context, c access.Caller, ref string) ([]sandbox.Secret, error)
	Secret(ctx context.Context, c access.Caller, ref, name string) (sandbox.Secret, error)
	// The vault's hold for no sandbox until they are attached: all of a sandbox's at once, by the names that they have there.
	Vault(ctx context.Context, c access.Caller) ([]sandbox.Secret, error)
	AddToVault(ctx context.Context, c access.Caller, r secrets.VaultRequest) (sandbox.Secret, error)
	ChangeInVault(ctx context.Context, c access.Caller, name string, ch secrets.VaultChange) (sandbox.Secret, error)
	DeleteFromVault(ctx context.Context, c access.Caller, name string) error
	Attach(ctx context.Context, c access.Caller, ref string, all map[string]string) error
	DeleteSecret(ctx context.Context, c access.Caller, ref, name string) error
}
