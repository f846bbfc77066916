// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// faulty is a driver that fails where it is told to. Its hooks see every call
// to the driver and to its instances by name ("create", "open", "start", "dial",
// "stop", "remove", "pause", "resume", "resize"), before and after the real thing was done.
type faulty struct {
	runtime.Driver

	mu      sync.Mutex
	before  func(ctx context.Context, call string) error // an error stands for the call, which is not made
	after   func(ctx context.Context, call string) error // an error replaces success
	track   bool                                         // instances tell which files change
	changed string                                       // the path of it; empty: that of changes
	made    int                                          // how many changes they tell of below the artifacts
	bare    bool                                         // instances can do what each can, and no more
}

func (f *faulty) set(before, after func(context.Context, string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

func (f *faulty) call(ctx context.Context, name string, do func() error) error {
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	if before != nil {
		if err := before(ctx, name); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if after != nil {
		return after(ctx, name)
	}
	return nil
}

func (f *faulty) Create(ctx context.Context, spec runtime.Spec) (inst runtime.Instance, err error) {
	err = f.call(ctx, "create", func() (err error) {
		inst, err = f.Driver.Create(ctx, spec)
		return err
	})
	if err != nil {
		if inst != nil { // all or nothing holds for a driver that fails late, too
			_ = inst.Remove(context.WithoutCancel(ctx))
		}
		return nil, err
	}
	return f.wrap(inst), nil
}

func (f *faulty) Open(ctx context.Context, h runtime.Handle) (inst runtime.Instance, err error) {
	err = f.call(ctx, "open", func() (err error) {
		inst, err = f.Driver.Open(ctx, h)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f.wrap(inst), nil
}

func (f *faulty) wrap(inst runtime.Instance) runtime.Instance {
	i := &faultyInstance{inst, f}
	if f.bare {
		return struct{ runtime.Instance }{i}
	}
	if f.track {
		return &trackedInstance{i}
	}
	return i
}

type faultyInstance struct {
	runtime.Instance
	f *faulty
}

func (i *faultyInstance) Logs() (*os.File, error) { return i.Instance.(runtime.LogKeeper).Logs() }

func (i *faultyInstance) Start(ctx context.Context, spec runtime.Spec) error {
	return i.f.call(ctx, "start", func() error { return i.Instance.Start(ctx, spec) })
}

func (i *faultyInstance) Dial(ctx context.Context) (conn net.Conn, err error) {
	err = i.f.call(ctx, "dial", func() (err error) {
		conn, err = i.Instance.Dial(ctx)
		return err
	})
	if err != nil && conn != nil {
		_ = conn.Close()
	}
	return conn, err
}

func (i *faultyInstance) Stop(ctx context.Context, grace time.Duration) error {
	return i.f.call(ctx, "stop", func() error { return i.Instance.Stop(ctx, grace) })
}

func (i *faultyInstance) Remove(ctx context.Context) error {
	return i.f.call(ctx, "remove", func() error { return i.Instance.Remove(ctx) })
}

func (i *faultyInstance) Pause(ctx context.Context) error {
	err := i.f.call(ctx, "pause", func() error { return i.Instance.(runtime.Pauser).Pause(ctx) })
	if err != nil { // after an error nothing is frozen
		_ = i.Instance.(runtime.Pauser).Resume(context.WithoutCancel(ctx))
	}
	return err
}

func (i *faultyInstance) Resume(ctx context.Context) error {
	return i.f.call(ctx, "resume", func() error { return i.Instance.(runtime.Pauser).Resume(ctx) })
}

func (i *faultyInstance) Paused() bool { return i.Instance.(runtime.Pauser).Paused() }

func (i *faultyInstance) Resize(ctx context.Context, l sandbox.Limits) error {
	return i.f.call(ctx, "resize", func() error { return i.Instance.(runtime.Resizer).Resize(ctx, l) })
}

func (i *faultyInstance) SetHostname(ctx context.Context, name string) error {
	return i.f.call(ctx, "name", func() error { return i.Instance.(runtime.Namer).SetHostname(ctx, name) })
}

// trackedInstance tells of one change in every window but those on the artifacts.
type trackedInstance struct{ *faultyInstance }

func (i *trackedInstance) Track(_ context.Context, dir string) (runtime.Window, error) {
	if dir == sandbox.Artifacts {
		return madeWindow(i.f.made), nil
	}
	return window{i.f.changed}, nil
}

// madeWindow tells of as many changes.
type madeWindow int

func (w madeWindow) Close(context.Context) (sandbox.Changes, error) {
	return sandbox.Changes{Total: int(w), Complete: true}, nil
}

type window struct{ path string }

func (w window) Close(context.Context) (sandbox.Changes, error) {
	c := changes()
	if w.path != "" {
		c.Files[0].Path = w.path
	}
	return c, nil
}
