// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/usage"
)

// Usage tells what projects used.
type Usage interface {
	Report(ctx context.Context, c access.Caller, r usage.Request) ([]usage.Used, error)
}
