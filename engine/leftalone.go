// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// trackArtifacts opens a window on the artifacts, so that a caller need not look through
// them after each command; nil: nobody tells.
func (u *use) trackArtifacts(ctx context.Context) runtime.Window {
	t, ok := u.l.inst.(runtime.Tracker)
	if !ok {
		return nil
	}
	w, err := t.Track(ctx, sandbox.Artifacts)
	if err != nil {
		u.e.log.Warn("whether a command changes artifacts cannot be told", "sandbox", u.b.id, "error", err)
		return nil
	}
	return w
}

// leftAlone closes a window, which may be nil, and tells whether surely nothing changed in it.
func leftAlone(ctx context.Context, w runtime.Window) bool {
	if w == nil {
		return false
	}
	changes, err := w.Close(ctx)
	return err == nil && changes.Complete && changes.Total == 0
}
