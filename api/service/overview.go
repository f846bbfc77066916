// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/overview"
)

// Overview tells what a project, or for who runs the server all of it, is at.
type Overview interface {
	Overview(ctx context.Context, c access.Caller, allProjects bool) (overview.Overview, error)
}
