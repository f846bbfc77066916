// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/linux/changes"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Watcher = (*Instance)(nil)

// Watch begins a watch on a directory. See [runtime.Watcher].
func (i *Instance) Watch(ctx context.Context, dir string, o runtime.WatchOptions) (runtime.Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	source, err := i.source()
	if err != nil {
		return nil, err
	}
	w, err := source.Watch(dir, o.Recursive)
	if err != nil {
		return nil, err
	}
	return watch{w}, nil
}

// source is what tells of the changes in the instance's files.
func (i *Instance) source() (*changes.Source, error) {
	i.mu.Lock()
	l := i.live
	i.mu.Unlock()
	switch {
	case l == nil:
		return nil, fault.New(fault.State, "sandbox %s is not running", i.id)
	case i.d.changesErr != nil:
		return nil, i.d.changesErr
	case l.source == nil:
		return nil, fault.New(fault.Unsupported, "changes of the files of sandbox %s cannot be told; the server's log says why", i.id)
	}
	return l.source, nil
}

// watch gives a watch of package changes the contract's form.
type watch struct{ w *changes.Watch }

func (w watch) Close() error { return w.w.Close() }

func (w watch) Next(ctx context.Context) ([]sandbox.FileEvent, error) {
	got, err := w.w.Next(ctx)
	if err != nil {
		return nil, err
	}
	events := make([]sandbox.FileEvent, len(got))
	for n, e := range got {
		events[n] = sandbox.FileEvent{
			Type: sandbox.FileEventType(e.Kind), Path: e.Path, From: e.From, Exchange: e.Exchange,
			Escaped: e.Escaped, IsDir: e.IsDir, At: e.At, Dropped: e.Dropped,
		}
	}
	return events, nil
}
