// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/meter"
)

// Stats tells what sandboxes use now.
type Stats interface {
	Stats(ctx context.Context, c access.Caller, ref string) (meter.Stats, error)
	// Processes returns what runs in a sandbox, at most so many.
	Processes(ctx context.Context, c access.Caller, ref string, most int) (meter.Processes, error)
	All(ctx context.Context, c access.Caller, allProjects bool) (meter.Report, error)
	Follow(ctx context.Context, c access.Caller, ref string, send func(meter.Stats) error) error
	FollowAll(ctx context.Context, c access.Caller, allProjects bool, send func(meter.Report) error) error
}
