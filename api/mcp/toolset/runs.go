// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"os"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// Runs is what the tools need of runs; *runs.Runner has it. Every method but OpenArtifact checks
// the caller's rights.
type Runs interface {
	Start(context.Context, access.Caller, runs.Request) (*sandbox.Run, error)
	List(context.Context, access.Caller, runs.ListRequest) (runs.Page, error)
	Get(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error)
	Cancel(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error)
	Events(ctx context.Context, c access.Caller, id string, after int64, wait time.Duration) (*sandbox.Run, []*sandbox.RunEvent, error)
	Streams(ctx context.Context, c access.Caller, id string) ([]runs.Streams, error)
	ArtifactRun(ctx context.Context, c access.Caller, of, run string) (*sandbox.Run, error)
	OpenArtifact(r *sandbox.Run, path string) (*os.File, sandbox.Artifact, error)
}
