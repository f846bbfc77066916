// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/engine/points"
	"sandpit.dev/sandbox"
)

// Points reads files of disks at points in time: a snapshot, "base" or "now" of the sandbox of, or with of empty a snapshot
// by itself. It starts no sandbox, and uses none.
type Points interface {
	Stat(ctx context.Context, c access.Caller, of, at, path string) (sandbox.FileInfo, error)
	List(ctx context.Context, c access.Caller, of, at, path, after string, limit int) (entries []sandbox.FileInfo, more bool, err error)
	Read(ctx context.Context, c access.Caller, of, at, path string) (sandbox.FileInfo, io.ReadSeekCloser, error)
	DiffText(ctx context.Context, c access.Caller, ref, from, to, path string) (points.TextDiff, error)
}
