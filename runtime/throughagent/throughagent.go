// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package throughagent looks at the files of sandboxes through their agents, for drivers that do not see them from outside. It knows
// neither an Engine nor a cluster.
package throughagent

import (
	"context"
	"log/slog"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Track is [runtime.Tracker]'s, by the agent of i.
func Track(ctx context.Context, i runtime.Instance, dir string, log *slog.Logger) (runtime.Window, error) {
	w, err := agent.NewClient(i.Dial).Track(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &window{agent: w, id: i.Handle().ID, log: log}, nil
}

type window struct {
	agent *agent.Window
	id    sandbox.ID
	log   *slog.Logger
}

func (w *window) Close(ctx context.Context) (sandbox.Changes, error) {
	c, err := w.agent.Close(ctx)
	if why := w.agent.Why(); why != "" {
		w.log.Debug("which files a command changed is not told completely", "sandbox", w.id, "why", why)
	}
	return c, err
}

// Watch is [runtime.Watcher]'s, by the agent of i. down is closed when i, which is up, is down.
func Watch(ctx context.Context, i runtime.Instance, down <-chan struct{}, dir string, o runtime.WatchOptions) (runtime.Watch, error) {
	w, err := agent.NewClient(i.Dial).Watch(ctx, dir, o.Recursive)
	if err != nil {
		return nil, err
	}
	return &watch{Watch: w, id: i.Handle().ID, down: down}, nil
}

type watch struct {
	*agent.Watch
	id   sandbox.ID
	down <-chan struct{}
}

// downPatience is how long Next waits, after a connection broke, to hear that the instance is down.
const downPatience = 5 * time.Second

// Next is the agent's. A connection also breaks when the instance goes down, which the driver hears a moment later: the error is fault.State then.
func (w *watch) Next(ctx context.Context) ([]sandbox.FileEvent, error) {
	events, err := w.Watch.Next(ctx)
	if !fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
		return events, err
	}
	limit := time.NewTimer(downPatience)
	defer limit.Stop()
	select {
	case <-w.down:
		return nil, fault.New(fault.State, "sandbox %s is not running", w.id)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-limit.C:
		return nil, err
	}
}
