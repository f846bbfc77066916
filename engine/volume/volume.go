// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package volume makes, lists and deletes volumes: the driver's half and the records. It knows no
// verb and no caller; whose sandboxes mount a volume it asks the records.
package volume

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

const (
	// Bound bounds making or deleting a volume.
	Bound = 5 * time.Minute
	// usageBound bounds asking what one holds.
	usageBound = 10 * time.Second
)

// Request is what a new volume shall be.
type Request struct {
	Name    string // the rules are those of a key; unique in the project
	SizeMB  int    // the most that it holds, in MiB, to sandbox.MaxDiskMB; zero: no limit of its own
	Runtime string // whose sandboxes can mount it; empty: the default
	// Lifetime is how long after its creation it is deleted, or as soon after that as no sandbox mounts it; to
	// sandbox.MaxVolumeLifetime. Zero: it stays until it is deleted.
	Lifetime time.Duration
}

// Info is a volume and how it is used.
type Info struct {
	sandbox.Volume
	UsedBytes int64        // what it holds; -1 where the host does not count it
	Users     []sandbox.ID // the sandboxes that mount it, those that are down too
}

// Keeper keeps the volumes of an engine. It is safe for concurrent use.
type Keeper struct {
	core     *core.Core
	sweeping sync.Mutex // held while expired ones are deleted
}

// New returns a keeper of volumes.
func New(c *core.Core) *Keeper { return &Keeper{core: c} }

func (k *Keeper) driver(name string) (runtime.Volumer, error) {
	return core.Driver[runtime.Volumer](k.core, name, "volumes")
}

// Check returns fault.Invalid with every wrong field of a request.
func (k *Keeper) Check(r Request) error {
	var f check.Fields
	f.Add(sandbox.CheckKey("name", r.Name))
	if r.SizeMB < 0 || r.SizeMB > sandbox.MaxDiskMB {
		f.Bad("size_mb", "%d is outside 0 to %d MiB (0: no limit)", r.SizeMB, sandbox.MaxDiskMB)
	}
	if name := cmp.Or(r.Runtime, k.core.Default); k.core.Runtimes[name] == nil {
		f.Bad("runtime", "%q is no runtime of this server", sandbox.Clip(name, 40))
	}
	f.Add(checkLifetime(r.Lifetime))
	return f.Err()
}

// Create makes an empty volume, of a request that was checked. A name that the project has is
// fault.Exists.
func (k *Keeper) Create(ctx context.Context, project string, r Request, who core.Actor) (Info, error) {
	v := &sandbox.Volume{
		ID: sandbox.NewID(), Project: project, Name: r.Name, Runtime: cmp.Or(r.Runtime, k.core.Default), SizeMB: r.SizeMB,
		State: sandbox.VolumeCreating, CreatedAt: k.core.Now(), CreatedBy: who.Name,
	}
	v.SetLifetime(r.Lifetime)
	d, err := k.driver(v.Runtime)
	if err != nil {
		return Info{}, err
	}
	// The repair has to wait until it is made, or not.
	give, err := k.core.Holds.Own(ctx, v.ID)
	if err != nil {
		return Info{}, err
	}
	defer give()
	err = k.core.Store.Update(ctx, func(tx store.Tx) error { return tx.Volumes().Insert(v) })
	if fault.Is(err, fault.Exists) {
		return Info{}, fault.New(fault.Exists, "the project has a volume named %q already", v.Name).
			WithRemedy("mount that one, or choose another name")
	}
	if err != nil {
		return Info{}, err
	}
	k.core.Checkpoint("volume.intent")
	err = d.CreateVolume(ctx, v.ID, int64(v.SizeMB)<<20)
	k.core.Checkpoint("volume.done")
	ready := *v
	ready.State = sandbox.VolumeReady
	ev := k.event(sandbox.EventVolume, v, who, "")
	if err == nil {
		err = k.core.Store.Update(ctx, func(tx store.Tx) error {
			if err := tx.Volumes().Update(&ready); err != nil {
				return err
			}
			return tx.Events().Append(ev)
		})
	}
	if err != nil {
		actx, cancel := core.Aside(ctx)
		defer cancel()
		if undoErr := k.erase(actx, v, nil); undoErr != nil {
			k.core.Log.Error("what is left of a volume that failed cannot be removed; it is tried again", "volume", v.ID, "error", undoErr)
			k.core.Retry(v.ID)
		}
		return Info{}, err
	}
	k.core.Metrics.Happened([]*sandbox.Event{ev})
	k.core.Checkpoint("volume.outcome")
	return Info{Volume: ready}, nil
}

// event is an event of a volume; its ProcessID is the volume's id.
func (k *Keeper) event(t sandbox.EventType, v *sandbox.Volume, who core.Actor, more string) *sandbox.Event {
	ev := who.Event(t, &sandbox.Sandbox{Project: v.Project}, k.core.Now())
	ev.ProcessID, ev.Detail = string(v.ID), sandbox.Clip(fmt.Sprintf("%s, named %q%s", v.ID, v.Name, more), sandbox.MaxEventDetail)
	return ev
}

// List returns the project's volumes, by name.
func (k *Keeper) List(ctx context.Context, project string) ([]Info, error) {
	var out []Info
	err := k.core.Store.View(ctx, func(tx store.Tx) error {
		all, err := tx.Volumes().List(project)
		if err != nil {
			return err
		}
		for _, v := range all {
			if v.State != sandbox.VolumeReady {
				continue
			}
			info, err := infoOf(tx, v)
			if err != nil {
				return err
			}
			out = append(out, info)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].UsedBytes = k.Usage(ctx, &out[i].Volume)
	}
	return out, ctx.Err()
}

// Get returns one, by its name or its id.
func (k *Keeper) Get(ctx context.Context, project, ref string) (Info, error) {
	var info Info
	err := k.core.Store.View(ctx, func(tx store.Tx) error {
		v, err := byRef(tx, project, ref)
		if err != nil {
			return err
		}
		info, err = infoOf(tx, v)
		return err
	})
	if err != nil {
		return Info{}, err
	}
	info.UsedBytes = k.Usage(ctx, &info.Volume)
	return info, ctx.Err()
}

// infoOf returns a volume with its users; [Keeper.Usage] says what it holds.
func infoOf(tx store.Tx, v *sandbox.Volume) (Info, error) {
	users, err := tx.Volumes().Users(v.ID)
	return Info{Volume: *v, Users: users}, err
}

// Usage returns what a volume holds; -1 where nobody can tell.
func (k *Keeper) Usage(ctx context.Context, v *sandbox.Volume) int64 {
	d, err := k.driver(v.Runtime)
	if err != nil {
		return -1
	}
	ctx, cancel := context.WithTimeout(ctx, usageBound)
	defer cancel()
	n, err := d.VolumeUsage(ctx, v.ID)
	if err != nil {
		if ctx.Err() == nil {
			k.core.Log.Warn("what a volume holds cannot be told", "volume", v.ID, "error", err)
		}
		return -1
	}
	return n
}

// Delete deletes one, with all that is in it. While any sandbox mounts it, up
// or down, it is fault.Conflict and names them.
func (k *Keeper) Delete(ctx context.Context, project, ref string, who core.Actor) error {
	var v *sandbox.Volume
	err := k.core.Store.Update(ctx, func(tx store.Tx) (err error) {
		if v, err = byRef(tx, project, ref); err != nil {
			return err
		}
		if err := unused(tx, v); err != nil {
			return err
		}
		v.State = sandbox.VolumeDeleting
		return tx.Volumes().Update(v)
	})
	if err != nil {
		return err
	}
	return k.finish(ctx, v, who, who.Did("deleted"))
}

// finish deletes a volume whose record says so.
func (k *Keeper) finish(ctx context.Context, v *sandbox.Volume, who core.Actor, did string) error {
	k.core.Checkpoint("unvolume.intent")
	give, err := k.core.Holds.Own(ctx, v.ID)
	if err != nil {
		k.core.Retry(v.ID)
		return err
	}
	defer give()
	if err := k.erase(ctx, v, k.event(sandbox.EventVolumeDeleted, v, who, "; "+did)); err != nil {
		k.core.Retry(v.ID)
		return fault.Wrap(fault.Unavailable, err, "the volume %s cannot be deleted now", v.Name).
			WithRemedy("the server goes on trying; ask again in a while")
	}
	return nil
}

// maxNamed is how many users a refusal names.
const maxNamed = 5

// unused is fault.Conflict while sandboxes mount the volume.
func unused(tx store.Tx, v *sandbox.Volume) error {
	users, err := tx.Volumes().Users(v.ID)
	if err != nil || len(users) == 0 {
		return err
	}
	var names []string
	for _, id := range users[:min(len(users), maxNamed)] {
		s, err := tx.Sandboxes().Get(id)
		if err != nil {
			return err
		}
		names = append(names, s.Ref())
	}
	list := strings.Join(names, ", ")
	if more := len(users) - len(names); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fault.New(fault.Conflict, "the volume %s is mounted by %s", v.Name, list).
		WithRemedy("delete these sandboxes, or stop them and take the volume out of their mounts; then ask again")
}

// erase removes a volume: the driver's half, then the record, with an event
// (nil: none). The caller has it alone.
func (k *Keeper) erase(ctx context.Context, v *sandbox.Volume, ev *sandbox.Event) error {
	d, err := k.driver(v.Runtime)
	if err != nil {
		return err
	}
	if err := d.RemoveVolume(ctx, v.ID); err != nil {
		return err
	}
	k.core.Checkpoint("unvolume.done")
	if err := k.core.Unlist(ctx, func(tx store.Tx) error { return tx.Volumes().Delete(v.ID) }, ev); err != nil {
		return err
	}
	k.core.Checkpoint("unvolume.outcome")
	return nil
}

// Known returns the runtimes of all records by their ids, and those that are intents.
func (k *Keeper) Known(ctx context.Context) (known map[sandbox.ID]string, intents []sandbox.ID, err error) {
	known = make(map[sandbox.ID]string)
	var all []*sandbox.Volume
	err = k.core.Store.View(ctx, func(tx store.Tx) (err error) {
		all, err = tx.Volumes().List("")
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the volumes of the last run: %w", err)
	}
	for _, v := range all {
		known[v.ID] = v.Runtime
		if v.State != sandbox.VolumeReady {
			intents = append(intents, v.ID)
		}
	}
	return known, intents, nil
}

// Reconcile finishes or undoes what was begun with a volume, if anything was, and if there is such
// a one. The caller has it alone.
func (k *Keeper) Reconcile(ctx context.Context, id sandbox.ID) error {
	var v *sandbox.Volume
	err := k.core.Store.View(ctx, func(tx store.Tx) (err error) {
		v, err = tx.Volumes().Get(id)
		return err
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case v.State == sandbox.VolumeCreating:
		return k.erase(ctx, v, nil)
	case v.State == sandbox.VolumeDeleting:
		return k.erase(ctx, v, k.event(sandbox.EventVolumeDeleted, v, core.System, "; finished after an earlier failure"))
	}
	return nil
}

// byRef finds one that is ready, by its name or its id.
func byRef(tx store.Tx, project, ref string) (*sandbox.Volume, error) {
	var v *sandbox.Volume
	var err error
	switch {
	case sandbox.ValidID(ref):
		v, err = tx.Volumes().Get(sandbox.ID(ref))
	case sandbox.CheckKey("volume", ref) == nil:
		v, err = tx.Volumes().ByName(project, ref)
	default:
		return nil, NotFound(ref)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	if err != nil || v.Project != project || v.State != sandbox.VolumeReady {
		return nil, NotFound(ref)
	}
	return v, nil
}

// NotFound returns the error for a volume that is not there.
func NotFound(ref string) *fault.Error {
	return fault.New(fault.NotFound, "there is no volume %q", sandbox.Clip(ref, 80)).
		WithRemedy("list the volumes to see which there are, or create one")
}
