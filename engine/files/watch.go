// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"sync"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// WatchRequest is a watch on a directory.
type WatchRequest struct {
	Path      string // of the directory, as for files; no symbolic link may stand in it
	User      string // who has to be able to list it; empty: sandbox
	Recursive bool   // with all that is below, also where the user may not look
}

// WatchEnd says how a watch ended by itself.
type WatchEnd struct {
	Reason WatchEndReason
	Detail string // for people
}

// WatchEndReason is why a watch ended.
type WatchEndReason string

const (
	WatchRemoved WatchEndReason = "removed" // the directory was removed or moved away
	WatchStopped WatchEndReason = "stopped" // the sandbox went down
)

// WatchFiles tells sink what changes in a directory until the directory or the
// sandbox is gone (a WatchEnd), ctx ends, sink fails or the engine ends (the
// error). sink is called first without any event, once the watch is in place:
// every later change is told. Then it gets events in order, numbered from 1, one
// call at a time; while it blocks, some thousands of events are kept, and the
// rest is counted in one of the type dropped.
//
// A watch is a use: a sandbox that is watched is not idle, and one that idleness
// stopped is started. Runtimes that cannot tell of changes are
// fault.Unsupported. The driver bounds the watches of one sandbox and the engine those
// of a project, both by fault.Exhausted.
func (s *Service) WatchFiles(ctx context.Context, c access.Caller, ref string, r WatchRequest, sink func([]sandbox.FileEvent) error) (WatchEnd, error) {
	u, err := s.use(ctx, c, access.SandboxesRead, ref, useWatch, &r.User, func(k *check.Fields) { k.Path("path", r.Path) })
	if err != nil {
		return WatchEnd{}, err
	}
	defer u.End()
	if err := s.watches.begin(c.Project); err != nil {
		return WatchEnd{}, err
	}
	defer s.watches.end(c.Project)
	bound, leave := s.engine.Bind(ctx)
	defer leave()
	w, err := watch(bound, u, r)
	if err != nil {
		return WatchEnd{}, u.Fail(bound, err)
	}
	defer func() { _ = w.Close() }() // nothing of it is left either way
	if err := sink(nil); err != nil {
		return WatchEnd{}, err
	}
	for seq := int64(0); ; {
		events, err := w.Next(bound)
		if err != nil {
			return watchEnd(ctx, bound, u, err)
		}
		for i := range events {
			seq++
			events[i].Seq = seq
		}
		if err := sink(events); err != nil {
			return WatchEnd{}, err
		}
	}
}

// watch begins a watch on a directory, where the user may look into it.
func watch(ctx context.Context, u *engine.Use, r WatchRequest) (runtime.Watch, error) {
	watcher, ok := u.Watcher(ctx)
	if !ok {
		return nil, fault.New(fault.Unsupported, "the runtime of the sandbox %s cannot tell of changes as they happen", u.Sandbox()).
			WithRemedy("list the directory from time to time")
	}
	dir := u.Account().Absolute(r.Path)
	// The host sees all: that the user may look into the directory is for the
	// agent to say, with the rights that the user has inside.
	if _, _, err := u.Client().List(ctx, dir, sandbox.ListFilesOptions{User: r.User, Limit: 1}); err != nil {
		return nil, err
	}
	return watcher.Watch(ctx, dir, runtime.WatchOptions{Recursive: r.Recursive})
}

// watchEnd returns why a watch gave no further event: bound, which ends with ctx or with the
// engine, or the watch itself is over.
func watchEnd(ctx, bound context.Context, u *engine.Use, err error) (WatchEnd, error) {
	switch {
	case ctx.Err() != nil:
		return WatchEnd{}, ctx.Err()
	case bound.Err() != nil:
		return WatchEnd{}, engine.Stopping()
	case fault.Is(err, fault.NotFound):
		return WatchEnd{Reason: WatchRemoved, Detail: "the directory was removed or moved away"}, nil
	case !fault.Is(err, fault.State):
		return WatchEnd{}, err
	}
	exit, down := u.Exit(bound)
	if !down {
		return WatchEnd{}, err
	}
	end := WatchEnd{Reason: WatchStopped, Detail: string(exit.Cause)}
	if exit.Detail != "" {
		end.Detail += ": " + exit.Detail
	}
	return end, nil
}

// MaxWatches is how many watches on files a project has open at once where [New] is
// not told. Each works for itself, however many sandboxes they are on.
const MaxWatches = 128

// watches counts the open watches on files of each project.
type watches struct {
	most int

	mu sync.Mutex
	of map[string]int
}

func newWatches(most int) *watches {
	if most <= 0 {
		most = MaxWatches
	}
	return &watches{most: most, of: make(map[string]int)}
}

// begin counts one more, or fails with fault.Exhausted.
func (w *watches) begin(project string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.of[project]; n >= w.most {
		return fault.New(fault.Exhausted, "%d watches on files of this project are open, which is the most", n).
			WithRemedy("close one, or watch a directory above, recursively")
	}
	w.of[project]++
	return nil
}

func (w *watches) end(project string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[project]--; w.of[project] == 0 {
		delete(w.of, project)
	}
}
