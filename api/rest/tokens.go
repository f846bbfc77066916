// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
)

// Tokens makes, lists, rotates and ends bearer tokens; *bearer.Authority does. It checks
// the caller's rights. An empty project is all that the caller manages.
type Tokens interface {
	Create(context.Context, access.Caller, bearer.NewToken) (access.Token, bearer.Secret, error)
	Rotate(ctx context.Context, c access.Caller, project, idOrName string, grace time.Duration) (access.Token, bearer.Secret, error)
	List(ctx context.Context, c access.Caller, project string) ([]*access.Token, error)
	Delete(ctx context.Context, c access.Caller, project, idOrName string) error
}
