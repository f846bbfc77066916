// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package core is what the parts of the engine below its verbs work with: the records, the
// drivers, what is in use, the figures, and whom an event names. It knows no verb and no part.
package core

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"sandpit.dev/engine/hold"
	"sandpit.dev/engine/metrics"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Core is what an engine shares with its parts. It is safe for concurrent use.
type Core struct {
	Store    store.Store               // writes no event with the value of a secret
	Runtimes map[string]runtime.Driver // by name
	Default  string                    // the runtime of what names none
	Holds    *hold.Table               // on snapshots and volumes
	Metrics  *metrics.Metrics
	Log      *slog.Logger
	Now      func() time.Time // as records have it
	// Checkpoint is called at every commit point, with its name.
	Checkpoint func(name string)
	// Spawn runs fn in a goroutine that the engine's end waits for, and whose context ends with
	// the engine.
	Spawn func(fn func(context.Context))
	// Retry has a snapshot or a volume looked at again, in a while.
	Retry func(sandbox.ID)
}

// CleanupBound bounds cleaning up after work whose own context may be over.
const CleanupBound = 30 * time.Second

// Aside returns a context for cleaning up after work whose own context may be over.
func Aside(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), CleanupBound)
}

// RuntimeNames returns the drivers' names, sorted.
func (c *Core) RuntimeNames() []string { return slices.Sorted(maps.Keys(c.Runtimes)) }

// RoomFor returns why a runtime has no room for anything new, fault.Full, or nil.
func (c *Core) RoomFor(name string) error {
	if r, ok := c.Runtimes[name].(runtime.DiskReporter); ok {
		if d := r.Disk(); d.Failed != nil {
			return d.Failed
		} else if d.Full != nil {
			return d.Full
		}
	}
	return nil
}

// MayMake returns why nothing new can be made with a runtime, or not with the disk that was asked for; nil: it can.
func (c *Core) MayMake(ctx context.Context, name string, diskMB int) error {
	if err := c.RoomFor(name); err != nil || diskMB == 0 {
		return err
	}
	return c.mayLimitDisk(ctx, name)
}

// MayChangeDisk refuses another limit for the disk of a sandbox whose runtime sets none.
func (c *Core) MayChangeDisk(ctx context.Context, s *sandbox.Sandbox, diskMB *int) error {
	if diskMB == nil || *diskMB == s.Limits.DiskMB {
		return nil
	}
	return c.mayLimitDisk(ctx, s.Runtime)
}

// mayLimitDisk refuses a limit of the disk that a caller asks of a runtime which sets none.
func (c *Core) mayLimitDisk(ctx context.Context, name string) error {
	d, ok := c.Runtimes[name].(runtime.DiskLimiter)
	if !ok {
		return nil
	}
	err := d.MayLimitDisk(ctx)
	if fault.Is(err, fault.Unsupported) {
		return fault.Wrap(fault.Unsupported, err, "disk_mb: %s", Reason(err)).WithRemedy("leave disk_mb out, or ask for another runtime")
	}
	return err
}

// Driver returns the driver of a runtime that something kept needs, as a D: what of it keeps
// snapshots, or volumes. keeps says so in words.
func Driver[D any](c *Core, name, keeps string) (D, error) {
	var none D
	d := c.Runtimes[name]
	if d == nil {
		return none, fault.New(fault.Unavailable, "this needs the runtime %q, which this server is not configured for", name).
			WithRemedy("start the server with that runtime")
	}
	k, ok := d.(D)
	if !ok {
		return none, fault.New(fault.Unsupported, "the runtime %q keeps no %s", name, keeps).WithRemedy("use another runtime")
	}
	return k, nil
}

// Append appends one event in a transaction of its own.
func (c *Core) Append(ctx context.Context, ev *sandbox.Event) error {
	err := c.Store.Update(ctx, func(tx store.Tx) error { return tx.Events().Append(ev) })
	if err == nil {
		c.Metrics.Happened([]*sandbox.Event{ev})
	}
	return err
}

// AppendAll appends events in a transaction.
func AppendAll(tx store.Tx, events []*sandbox.Event) error {
	for _, ev := range events {
		if err := tx.Events().Append(ev); err != nil {
			return err
		}
	}
	return nil
}

// Unlist commits that a record is gone, with an event (nil: none). A record that is
// deleted already is not an error.
func (c *Core) Unlist(ctx context.Context, remove func(store.Tx) error, ev *sandbox.Event) error {
	var events []*sandbox.Event
	if ev != nil {
		events = append(events, ev)
	}
	err := c.Store.Update(ctx, func(tx store.Tx) error {
		if err := remove(tx); err != nil {
			return err
		}
		return AppendAll(tx, events)
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil {
		c.Metrics.Happened(events)
	}
	return err
}

// Spec is what a driver needs to know of a sandbox.
func Spec(s *sandbox.Sandbox, img image.Image) runtime.Spec {
	spec := runtime.Spec{ID: s.ID, Image: runtime.Image{Name: img.Name, Digest: img.Digest, Root: img.Root}, Hostname: s.Hostname(), Limits: s.Limits, Mounts: s.Mounts, Project: s.Project}
	if !s.Account.Default() {
		spec.Account = &runtime.Account{Account: s.Account, Again: true}
	}
	return spec
}
