// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"os"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// Runs runs batches of commands, whoever goes away. A run is named by its id.
type Runs interface {
	Start(ctx context.Context, c access.Caller, r runs.Request) (*sandbox.Run, error)
	Get(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error)
	List(ctx context.Context, c access.Caller, r runs.ListRequest) (runs.Page, error)
	// Await returns a run when it has ended or the wait is over.
	Await(ctx context.Context, c access.Caller, id string, wait time.Duration) (*sandbox.Run, error)
	Cancel(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error)
	// Events returns the events after the one numbered after, and waits for one if there
	// is none.
	Events(ctx context.Context, c access.Caller, id string, after int64, wait time.Duration) (*sandbox.Run, []*sandbox.RunEvent, error)
	// Streams returns what is kept of the output of each command.
	Streams(ctx context.Context, c access.Caller, id string) ([]runs.Streams, error)
	// ArtifactRun returns the run whose artifacts are meant: of is the key or the id of a
	// sandbox, which may be gone.
	ArtifactRun(ctx context.Context, c access.Caller, of, run string) (*sandbox.Run, error)
	OpenArtifact(r *sandbox.Run, path string) (*os.File, sandbox.Artifact, error)
}
