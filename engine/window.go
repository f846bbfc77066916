// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/engine/window"
	"sandpit.dev/runtime"
)

// changing returns what windows are opened by, once the account is there whose directories they look at.
func (u *Use) changing(ctx context.Context) window.Of {
	if _, ok := u.l.inst.(runtime.Tracker); ok {
		u.awaitAccount(ctx)
	}
	return window.Of{Sandbox: u.b.id, Instance: u.l.inst, Log: u.e.core.Log, Labels: u.labels}
}

// Track opens a window on the workspace, and if asked to on the artifacts.
func (u *Use) Track(ctx context.Context, artifacts bool) window.Window {
	return u.changing(ctx).Open(ctx, u.Account().Absolute("."), artifacts)
}
