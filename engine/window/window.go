// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package window looks at which files change while a command runs, by what a runtime tells of directories. It knows no command.
package window

import (
	"context"
	"log/slog"

	"sandpit.dev/engine/core"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/redact"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Of is whose directories are looked at.
type Of struct {
	Sandbox  sandbox.ID
	Instance runtime.Instance
	Log      *slog.Logger
	Labels   func() *redact.Labels // take values of secrets out of names
}

// Window looks at which files change while a command runs. Close it.
type Window struct {
	of                   Of
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

// Open opens a window on the workspace, and if asked to on the artifacts, so that a caller need not look through them after
// each command.
func (of Of) Open(ctx context.Context, workspace string, artifacts bool) Window {
	w := Window{of: of, workspace: of.Track(ctx, workspace)}
	if artifacts {
		w.artifacts = of.Track(ctx, sandbox.Artifacts)
	}
	return w
}

// WithArtifacts returns the window with one on the artifacts, which Track opened.
func (w Window) WithArtifacts(artifacts runtime.Window) Window {
	w.artifacts = artifacts
	return w
}

// Track opens a window on a directory; nil where that cannot be had.
func (of Of) Track(ctx context.Context, dir string) runtime.Window {
	t, ok := of.Instance.(runtime.Tracker)
	if !ok {
		return nil
	}
	w, err := t.Track(ctx, dir)
	if err != nil {
		of.Log.Warn("which files a command changes cannot be told", "sandbox", of.Sandbox, "dir", dir, "error", err)
		return nil
	}
	return w
}

// Close closes the window, whatever becomes of ctx.
func (w Window) Close(ctx context.Context) Changes {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	c := Changes{NoArtifacts: LeftAlone(ctx, w.artifacts)}
	if w.workspace == nil {
		return c
	}
	found, err := w.workspace.Close(ctx)
	if err != nil {
		w.of.Log.Warn("which files a command changed cannot be told", "sandbox", w.of.Sandbox, "error", err)
		return c
	}
	c.Files, c.Total, c.Complete = process.Answered(secrets.Changes(w.of.Labels(), found.Files)), found.Total, found.Complete
	return c
}

// LeftAlone closes a window, which may be nil, and reports whether surely nothing changed in it.
func LeftAlone(ctx context.Context, w runtime.Window) bool {
	if w == nil {
		return false
	}
	changes, err := w.Close(ctx)
	return err == nil && changes.Complete && changes.Total == 0
}
