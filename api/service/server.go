// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"io"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/images"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/image"
	"sandpit.dev/image/dockerfile"
	"sandpit.dev/sandbox"
)

// Activity returns what happened.
type Activity interface {
	Activity(ctx context.Context, c access.Caller, ref string, r engine.ActivityRequest) (events []*sandbox.Event, next string, err error)
	// Departed returns the event of a sandbox's deletion, by its id.
	Departed(ctx context.Context, c access.Caller, id string) (*sandbox.Event, error)
}

// Images lists and builds what sandboxes run on.
type Images interface {
	Images(ctx context.Context, c access.Caller) ([]image.Status, error)
	// HasImage reports whether an image is here, and allowed.
	HasImage(ctx context.Context, c access.Caller, name string) (bool, error)
	// BuildImage waits for a build that goes on whoever waits.
	BuildImage(ctx context.Context, c access.Caller, name string) (image.Status, error)
	// PullImage waits for a pull, which goes on when its callers leave.
	PullImage(ctx context.Context, c access.Caller, reference string) (image.Status, error)
	// ImportImages makes images of an archive of others.
	ImportImages(ctx context.Context, c access.Caller, archive io.Reader, as string) ([]image.Status, error)
}

// Keeper administers images.
type Keeper interface {
	Inspect(ctx context.Context, c access.Caller, name string) (images.Details, error)
	Counts(ctx context.Context, c access.Caller, names []string) (map[string]int, error)
	Rebuild(ctx context.Context, c access.Caller, name string) (image.Status, error)
	Delete(ctx context.Context, c access.Caller, d images.Deletion) (images.Deleted, error)
	Prune(ctx context.Context, c access.Caller, p images.Pruning) (images.Pruned, error)
	// Save reads an image for an archive of it.
	Save(ctx context.Context, c access.Caller, name string) (*images.Saving, error)
	// Push puts an image into a registry, and returns when it is there.
	Push(ctx context.Context, c access.Caller, name, reference string, tell func(sent, total int64)) (images.Pushed, error)
	// Command returns what the image of a sandbox says is to be run, with words in place of its own.
	Command(ctx context.Context, c access.Caller, ref string, words []string) (images.Command, error)
	// Log writes the output of the last build, and with follow what the one that goes on writes until it ends.
	// flush is called when there is no more for now.
	Log(ctx context.Context, c access.Caller, name string, w io.Writer, follow bool, flush func() error) error
	AllPools(ctx context.Context, c access.Caller) ([]prewarm.PoolInfo, error)
	// Pools returns the pools of an image, and ChangePool changes one.
	Pools(ctx context.Context, c access.Caller, name string) (image string, all []prewarm.PoolInfo, err error)
	ChangePool(ctx context.Context, c access.Caller, p images.PoolChange) (image string, all []prewarm.PoolInfo, err error)
}

// Dockerfiles builds images of Dockerfiles.
type Dockerfiles interface {
	// BuildDockerfile makes an image of a Dockerfile in a context, which is an archive, and tells what goes on. It
	// ends with ctx.
	BuildDockerfile(ctx context.Context, c access.Caller, archive io.Reader, r dockerfile.Request, tell func(dockerfile.Event)) (image.Status, error)
}

// Server says what the server is and can do.
type Server interface {
	Info(ctx context.Context, c access.Caller) (engine.Info, error)
	// Most returns the most that a sandbox may ask for.
	Most() sandbox.Limits
	// MostCommandTime returns the longest time limit that a command may have.
	MostCommandTime() time.Duration
}
