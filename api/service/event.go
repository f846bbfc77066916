// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/events"
)

// Events tells what changes of a project's records.
type Events interface {
	Follow(ctx context.Context, c access.Caller, q events.Query, f events.Follower) error
}
