// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/engine/core"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Window looks at which files change while a command runs. Close it.
type Window struct {
	u                    *Use
	workspace, artifacts runtime.Window // each may be nil
}

// Changes are the files of the workspace that changed while a window was open.
type Changes struct {
	Files    []sandbox.FileChange // sorted by path; the first of them, where there are many
	Total    int
	Complete bool // false: the host had to drop some, or cannot tell
	// NoArtifacts is that nothing changed below sandbox.Artifacts for sure.
	NoArtifacts bool
}

// Recorded returns those of the files that an event keeps.
func (c Changes) Recorded() []sandbox.FileChange { return process.Recorded(c.Files) }

// Track opens a window on the workspace, and if asked to on the artifacts, so that a caller need
// not look through them after each command.
func (u *Use) Track(ctx context.Context, artifacts bool) Window {
	w := Window{u: u, workspace: u.track(ctx, u.Account().Absolute("."))}
	if artifacts {
		w.artifacts = u.track(ctx, sandbox.Artifacts)
	}
	return w
}

// track opens a window on a directory; nil where that cannot be had.
func (u *Use) track(ctx context.Context, dir string) runtime.Window {
	t, ok := u.l.inst.(runtime.Tracker)
	if !ok {
		return nil
	}
	u.awaitAccount(ctx)
	w, err := t.Track(ctx, dir)
	if err != nil {
		u.e.core.Log.Warn("which files a command changes cannot be told", "sandbox", u.b.id, "dir", dir, "error", err)
		return nil
	}
	return w
}

// Close closes the window, whatever becomes of ctx.
func (w Window) Close(ctx context.Context) Changes {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	c := Changes{NoArtifacts: leftAlone(ctx, w.artifacts)}
	if w.workspace == nil {
		return c
	}
	found, err := w.workspace.Close(ctx)
	if err != nil {
		w.u.e.core.Log.Warn("which files a command changed cannot be told", "sandbox", w.u.b.id, "error", err)
		return c
	}
	c.Files, c.Total, c.Complete = process.Answered(secrets.Changes(w.u.labels(), found.Files)), found.Total, found.Complete
	return c
}

// leftAlone closes a window, which may be nil, and reports whether surely nothing changed in it.
func leftAlone(ctx context.Context, w runtime.Window) bool {
	if w == nil {
		return false
	}
	changes, err := w.Close(ctx)
	return err == nil && changes.Complete && changes.Total == 0
}
