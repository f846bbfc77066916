// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"path"
	"sync"

	"sandpit.dev/access"
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
func (e *Engine) WatchFiles(ctx context.Context, c access.Caller, ref string, r WatchRequest, sink func([]sandbox.FileEvent) error) (WatchEnd, error) {
	u, err := e.fileUse(ctx, c, access.SandboxesRead, ref, &r.User, func(k *check.Fields) { k.Path("path", r.Path) })
	if err != nil {
		return WatchEnd{}, err
	}
	u.what = actWatch
	defer u.End()
	if err := e.watches.begin(u.b.project); err != nil {
		return WatchEnd{}, err
	}
	defer e.watches.end(u.b.project)
	ctx, leave := e.group.bind(ctx)
	defer leave()
	w, err := u.watchFiles(ctx, r)
	if err != nil {
		return WatchEnd{}, u.Fail(ctx, err)
	}
	defer func() { _ = w.Close() }() // nothing of it is left either way
	if err := sink(nil); err != nil {
		return WatchEnd{}, err
	}
	for seq := int64(0); ; {
		events, err := w.Next(ctx)
		if err != nil {
			return u.watchEnd(ctx, err)
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

func (u *Use) watchFiles(ctx context.Context, r WatchRequest) (runtime.Watch, error) {
	watcher, ok := u.l.inst.(runtime.Watcher)
	if !ok {
		return nil, fault.New(fault.Unsupported, "the runtime of the sandbox %s cannot tell of changes as they happen", u.b.id).
			WithRemedy("list the directory from time to time")
	}
	dir := r.Path
	if !path.IsAbs(dir) {
		dir = path.Join(sandbox.Workspace, dir)
	}
	// The host sees all: that the user may look into the directory is for the
	// agent to say, with the rights that the user has inside.
	if _, _, err := u.l.client.List(ctx, dir, sandbox.ListFilesOptions{User: r.User, Limit: 1}); err != nil {
		return nil, err
	}
	return watcher.Watch(ctx, path.Clean(dir), runtime.WatchOptions{Recursive: r.Recursive})
}

// watchEnd tells why a watch gave no further event.
func (u *Use) watchEnd(ctx context.Context, err error) (WatchEnd, error) {
	switch {
	case u.e.group.ctx.Err() != nil:
		return WatchEnd{}, shuttingDown()
	case ctx.Err() != nil:
		return WatchEnd{}, ctx.Err()
	case fault.Is(err, fault.NotFound):
		return WatchEnd{Reason: WatchRemoved, Detail: "the directory was removed or moved away"}, nil
	case !fault.Is(err, fault.State) || !u.wentDown(ctx):
		return WatchEnd{}, err
	}
	end := WatchEnd{Reason: WatchStopped, Detail: string(u.l.exit.Cause)}
	if u.l.exit.Detail != "" {
		end.Detail += ": " + u.l.exit.Detail
	}
	return end, nil
}

// MaxWatches is how many watches on files a project has open at once where
// [Options] does not say. Each works for itself, however many sandboxes they are on.
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
