// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var (
	_ runtime.Tracker = (*Instance)(nil)
	_ runtime.Watcher = (*Instance)(nil)
)

// Track has the agent look at a directory: the server does not see a pod's files.
func (i *Instance) Track(ctx context.Context, dir string) (runtime.Window, error) {
	w, err := agent.NewClient(i.Dial).Track(ctx, dir)
	if err != nil {
		return nil, err
	}
	return window{i, w}, nil
}

// window is one of the agent's.
type window struct {
	i *Instance
	w *agent.Window
}

func (w window) Close(ctx context.Context) (sandbox.Changes, error) {
	c, err := w.w.Close(ctx)
	if why := w.w.Why(); why != "" {
		w.i.d.log.Debug("which files a command changed is not told completely", "sandbox", w.i.id, "why", why)
	}
	return c, err
}

// Watch has the agent watch a directory.
func (i *Instance) Watch(ctx context.Context, dir string, o runtime.WatchOptions) (runtime.Watch, error) {
	down, err := i.life()
	if err != nil {
		return nil, err
	}
	w, err := agent.NewClient(i.Dial).Watch(ctx, dir, o.Recursive)
	if err != nil {
		return nil, err
	}
	return &watch{Watch: w, i: i, down: down}, nil
}

// watch is one of the agent's, in one life of the pod.
type watch struct {
	*agent.Watch
	i    *Instance
	down <-chan struct{} // closed when that is over
}

// downPatience is how long a connection that broke waits for the cluster to say that the pod ended.
const downPatience = 5 * time.Second

// Next is the agent's. A connection ends with the pod: that is told as such.
func (w *watch) Next(ctx context.Context) ([]sandbox.FileEvent, error) {
	events, err := w.Watch.Next(ctx)
	if !fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
		return events, err
	}
	limit := time.NewTimer(downPatience)
	defer limit.Stop()
	select {
	case <-w.down:
		return nil, w.i.notRunning()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-limit.C:
		return nil, err
	}
}
