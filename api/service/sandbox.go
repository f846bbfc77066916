// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/sandbox"
)

// Sandboxes makes, lists, changes and deletes sandboxes.
type Sandboxes interface {
	// Create makes a sandbox, or returns the one that has the key.
	Create(ctx context.Context, c access.Caller, r engine.CreateRequest) (s *sandbox.Sandbox, created bool, err error)
	// Get counts as a use of the sandbox, and Inspect does not.
	Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Inspect(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	List(ctx context.Context, c access.Caller, r engine.SandboxesRequest) (engine.Page, error)
	Update(ctx context.Context, c access.Caller, ref string, p update.Patch) (*sandbox.Sandbox, error)
	Start(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Stop(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	// StopWithin is Stop with a grace of the caller's; zero: at once.
	StopWithin(ctx context.Context, c access.Caller, ref string, grace time.Duration) (*sandbox.Sandbox, error)
	Pause(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Resume(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	// Restart ends a sandbox's processes and starts it again on its disk.
	Restart(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	// Reset replaces the disk of a sandbox by an empty one.
	Reset(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	// Archive packs the disk of a stopped sandbox, and keeps it elsewhere until a start.
	Archive(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Delete(ctx context.Context, c access.Caller, ref string) error
	// EverRan reports whether a sandbox, which may be gone, was ever up.
	EverRan(ctx context.Context, c access.Caller, id sandbox.ID) (bool, error)
}
