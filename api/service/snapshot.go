// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/sandbox"
)

// Snapshots keeps disks, and takes sandboxes back to them. A snapshot is named within the
// sandbox of, or with of empty by itself.
type Snapshots interface {
	CreateSnapshot(ctx context.Context, c access.Caller, ref string, r engine.SnapshotRequest) (*sandbox.Snapshot, error)
	Snapshots(ctx context.Context, c access.Caller, r snapshot.Query) (snapshot.Page, error)
	Snapshot(ctx context.Context, c access.Caller, of, snapshot string) (*sandbox.Snapshot, error)
	DeleteSnapshot(ctx context.Context, c access.Caller, of, snapshot string) error
	ArchiveSnapshot(ctx context.Context, c access.Caller, of, snapshot string) (*sandbox.Snapshot, error)
	ExportSnapshot(ctx context.Context, c access.Caller, of, snapshot string, w io.Writer) error
	ImportSnapshot(ctx context.Context, c access.Caller, r io.Reader, o engine.ImportRequest) (*sandbox.Snapshot, error)
	Rollback(ctx context.Context, c access.Caller, ref, to string) (*sandbox.Sandbox, error)
	// Fork makes all of the copies or none.
	Fork(ctx context.Context, c access.Caller, ref string, r engine.ForkRequest) ([]*sandbox.Sandbox, error)
	// Promote has a fork take the place of the sandbox that it was forked from.
	Promote(ctx context.Context, c access.Caller, ref string, r engine.PromoteRequest) (*sandbox.Sandbox, error)
	Diff(ctx context.Context, c access.Caller, ref string, r engine.DiffRequest) (sandbox.Changes, error)
}
