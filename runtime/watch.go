// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"

	"sandpit.dev/sandbox"
)

// Watcher is what instances have whose host can tell of changes of files as they
// happen.
type Watcher interface {
	// Watch begins a watch on the directory dir: absolute, inside, without a
	// symbolic link on the way (fault.Invalid). What is not there is
	// fault.NotFound, and more watches than the driver bears fault.Exhausted. What
	// was done before the call is not told.
	//
	// A driver may be told of a change that no event of its own fits: a file that
	// is moved in from elsewhere is created, one that is moved out is deleted.
	// What is in a directory that is moved in is not told. Changes that follow each
	// other closely may be told as one.
	Watch(ctx context.Context, dir string, o WatchOptions) (Watch, error)
}

// WatchOptions of a watch; the zero value works.
type WatchOptions struct {
	Recursive bool // with all that is below
}

// Watch tells of changes until Close. Its methods may be called concurrently.
type Watch interface {
	// Next waits for events and gives them in order. Those that a slow caller, or
	// the host, could not keep are counted in one of the type dropped. It fails
	// when ctx is done; and, after the last event, with fault.NotFound when the
	// directory was removed or moved away, with fault.State when the instance went
	// down or the watch was closed.
	Next(ctx context.Context) ([]sandbox.FileEvent, error)

	// Close ends the watch. Twice is fine.
	Close() error
}
