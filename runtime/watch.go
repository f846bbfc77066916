// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"

	"sandpit.dev/sandbox"
)

// Watcher is implemented by instances whose host can report changes of files as they happen.
type Watcher interface {
	// Watch starts watching the directory dir: absolute, inside, without a symbolic link on the
	// way (fault.Invalid). A missing directory is fault.NotFound, and more watches than the
	// driver supports are fault.Exhausted. Changes from before the call are not reported.
	//
	// A driver may report a change that has no event of its own by another: a file that is moved
	// in from elsewhere is created, one that is moved out is deleted. The content of a directory
	// that is moved in is not reported. Changes in quick succession may be reported as one.
	Watch(ctx context.Context, dir string, o WatchOptions) (Watch, error)
}

// WatchOptions configure a watch; the zero value works.
type WatchOptions struct {
	Recursive bool // with all that is below
}

// Watch reports changes until Close. Its methods may be called concurrently.
type Watch interface {
	// Next waits for events and returns them in order. Events that a slow caller, or the host,
	// could not keep are counted in one of type dropped. It fails when ctx is done; and, after
	// the last event, with fault.NotFound when the directory was removed or moved away, with
	// fault.State when the instance went down or the watch was closed, with fault.Exhausted when
	// there are more directories below it than the driver can watch.
	Next(ctx context.Context) ([]sandbox.FileEvent, error)

	// Close ends the watch. Calling it twice is fine.
	Close() error
}
