// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"

	"sandpit.dev/runtime"
	"sandpit.dev/runtime/throughagent"
)

var (
	_ runtime.Tracker = (*Instance)(nil)
	_ runtime.Watcher = (*Instance)(nil)
)

// Track has the agent look at a directory.
func (i *Instance) Track(ctx context.Context, dir string) (runtime.Window, error) {
	return throughagent.Track(ctx, i, dir, i.d.log)
}

// Watch has the agent watch a directory.
func (i *Instance) Watch(ctx context.Context, dir string, o runtime.WatchOptions) (runtime.Watch, error) {
	down, err := i.life()
	if err != nil {
		return nil, err
	}
	return throughagent.Watch(ctx, i, down, dir, o)
}
