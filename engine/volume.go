// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// volumeBound bounds making or deleting a volume.
const volumeBound = 5 * time.Minute

// VolumeRequest is what a new volume shall be.
type VolumeRequest struct {
	Name    string // the rules are those of a key; unique in the project
	SizeMB  int    // the most that it holds, in MiB, to sandbox.MaxDiskMB; zero: no limit of its own
	Runtime string // whose sandboxes can mount it; empty: the default
}

// VolumeInfo is a volume and how it is used.
type VolumeInfo struct {
	sandbox.Volume
	UsedBytes int64        // what it holds; -1 where the host does not count it
	Users     []sandbox.ID // the sandboxes that mount it, those that are down too
}

// CreateVolume makes an empty volume. A name that the project has is fault.Exists.
func (e *Engine) CreateVolume(ctx context.Context, c access.Caller, r VolumeRequest) (VolumeInfo, error) {
	if err := e.enterWork(c, access.SandboxesWrite); err != nil {
		return VolumeInfo{}, err
	}
	defer e.group.leave()
	var k check.Fields
	k.Add(sandbox.CheckKey("name", r.Name))
	if r.SizeMB < 0 || r.SizeMB > sandbox.MaxDiskMB {
		k.Bad("size_mb", "%d is outside 0 to %d MiB (0: no limit)", r.SizeMB, sandbox.MaxDiskMB)
	}
	if r.Runtime == "" {
		r.Runtime = e.fallback
	}
	if e.runtimes[r.Runtime] == nil {
		k.Bad("runtime", "%q is no runtime of this server", sandbox.Clip(r.Runtime, 40))
	}
	if err := k.Err(); err != nil {
		return VolumeInfo{}, err
	}
	if err := e.refuseValues(ctx, c.Project, "", onRecord{"name": {r.Name}}); err != nil {
		return VolumeInfo{}, err
	}
	who := core.ActorOf(c)
	v := &sandbox.Volume{
		ID: sandbox.NewID(), Project: c.Project, Name: r.Name, Runtime: r.Runtime, SizeMB: r.SizeMB,
		State: sandbox.VolumeCreating, CreatedAt: e.now(), CreatedBy: who.Name,
	}
	err := e.work(ctx, volumeBound, func(ctx context.Context) error { return e.makeVolume(ctx, v, who) }, nil)
	if err != nil {
		return VolumeInfo{}, err
	}
	return VolumeInfo{Volume: *v, UsedBytes: 0}, nil
}

// makeVolume is the four steps.
func (e *Engine) makeVolume(ctx context.Context, v *sandbox.Volume, who core.Actor) error {
	d, err := core.Driver[runtime.Volumer](e.core, v.Runtime, "volumes")
	if err != nil {
		return err
	}
	// The repair has to wait until it is made, or not.
	give, err := e.holds.Own(ctx, v.ID)
	if err != nil {
		return err
	}
	defer give()
	err = e.store.Update(ctx, func(tx store.Tx) error { return tx.Volumes().Insert(v) })
	if fault.Is(err, fault.Exists) {
		return fault.Wrap(fault.Exists, err, "the project has a volume named %q already", v.Name).
			WithRemedy("mount that one, or choose another name")
	}
	if err != nil {
		return err
	}
	e.checkpoint("volume.intent")
	err = d.CreateVolume(ctx, v.ID, int64(v.SizeMB)<<20)
	e.checkpoint("volume.done")
	ready := *v
	ready.State = sandbox.VolumeReady
	ev := volumeEvent(who, sandbox.EventVolume, v, e.now(), fmt.Sprintf("%s, named %q", v.ID, v.Name))
	if err == nil {
		err = e.store.Update(ctx, func(tx store.Tx) error {
			if err := tx.Volumes().Update(&ready); err != nil {
				return err
			}
			return tx.Events().Append(ev)
		})
	}
	if err != nil {
		actx, cancel := core.Aside(ctx)
		defer cancel()
		if undoErr := e.eraseVolume(actx, v, nil); undoErr != nil {
			e.log.Error("what is left of a volume that failed cannot be removed; it is tried again", "volume", v.ID, "error", undoErr)
			e.retry(v.ID)
		}
		return err
	}
	e.metrics.Happened([]*sandbox.Event{ev})
	e.checkpoint("volume.outcome")
	*v = ready
	return nil
}

// volumeEvent is an event of a volume; its ProcessID is the volume's id.
func volumeEvent(who core.Actor, t sandbox.EventType, v *sandbox.Volume, at time.Time, detail string) *sandbox.Event {
	ev := who.Event(t, &sandbox.Sandbox{Project: v.Project}, at)
	ev.ProcessID, ev.Detail = string(v.ID), sandbox.Clip(detail, sandbox.MaxEventDetail)
	return ev
}

// Volumes returns the project's volumes, by name.
func (e *Engine) Volumes(ctx context.Context, c access.Caller) ([]VolumeInfo, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.leave()
	var out []VolumeInfo
	err := e.store.View(ctx, func(tx store.Tx) error {
		all, err := tx.Volumes().List(c.Project)
		if err != nil {
			return err
		}
		for _, v := range all {
			if v.State != sandbox.VolumeReady {
				continue
			}
			users, err := tx.Volumes().Users(v.ID)
			if err != nil {
				return err
			}
			out = append(out, VolumeInfo{Volume: *v, Users: users})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].UsedBytes = e.volumeUsage(ctx, &out[i].Volume)
	}
	return out, ctx.Err()
}

// Volume returns one, by its name or its id.
func (e *Engine) Volume(ctx context.Context, c access.Caller, ref string) (VolumeInfo, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return VolumeInfo{}, err
	}
	defer e.group.leave()
	var info VolumeInfo
	err := e.store.View(ctx, func(tx store.Tx) error {
		v, err := volumeByRef(tx, c.Project, ref)
		if err != nil {
			return err
		}
		info.Volume = *v
		info.Users, err = tx.Volumes().Users(v.ID)
		return err
	})
	if err != nil {
		return VolumeInfo{}, err
	}
	info.UsedBytes = e.volumeUsage(ctx, &info.Volume)
	return info, ctx.Err()
}

// volumeUsage is what a volume holds; -1 where nobody can tell.
func (e *Engine) volumeUsage(ctx context.Context, v *sandbox.Volume) int64 {
	d, err := core.Driver[runtime.Volumer](e.core, v.Runtime, "volumes")
	if err != nil {
		return -1
	}
	ctx, cancel := context.WithTimeout(ctx, probeBound)
	defer cancel()
	n, err := d.VolumeUsage(ctx, v.ID)
	if err != nil {
		if ctx.Err() == nil {
			e.log.Warn("what a volume holds cannot be told", "volume", v.ID, "error", err)
		}
		return -1
	}
	return n
}

// DeleteVolume deletes one, with all that is in it. While any sandbox mounts it, up
// or down, it is fault.Conflict and names them.
func (e *Engine) DeleteVolume(ctx context.Context, c access.Caller, ref string) error {
	if err := e.enter(c, access.SandboxesWrite); err != nil {
		return err
	}
	defer e.group.leave()
	who := core.ActorOf(c)
	return e.work(ctx, volumeBound, func(ctx context.Context) error {
		var v *sandbox.Volume
		err := e.store.Update(ctx, func(tx store.Tx) (err error) {
			if v, err = volumeByRef(tx, c.Project, ref); err != nil {
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
		e.checkpoint("unvolume.intent")
		give, err := e.holds.Own(ctx, v.ID)
		if err != nil {
			e.retry(v.ID)
			return err
		}
		defer give()
		ev := volumeEvent(who, sandbox.EventVolumeDeleted, v, e.now(), fmt.Sprintf("%s, named %q; %s", v.ID, v.Name, who.Did("deleted")))
		if err := e.eraseVolume(ctx, v, ev); err != nil {
			e.retry(v.ID)
			return fault.Wrap(fault.Unavailable, err, "the volume %s cannot be deleted now", v.Name).
				WithRemedy("the server goes on trying; ask again in a while")
		}
		return nil
	}, nil)
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

// eraseVolume removes a volume: the driver's half, then the record, with an event
// (nil: none). The caller has it alone.
func (e *Engine) eraseVolume(ctx context.Context, v *sandbox.Volume, ev *sandbox.Event) error {
	d, err := core.Driver[runtime.Volumer](e.core, v.Runtime, "volumes")
	if err != nil {
		return err
	}
	if err := d.RemoveVolume(ctx, v.ID); err != nil {
		return err
	}
	e.checkpoint("unvolume.done")
	if err := e.core.Unlist(ctx, func(tx store.Tx) error { return tx.Volumes().Delete(v.ID) }, ev); err != nil {
		return err
	}
	e.checkpoint("unvolume.outcome")
	return nil
}

// volumeByRef finds one that is ready, by its name or its id.
func volumeByRef(tx store.Tx, project, ref string) (*sandbox.Volume, error) {
	var v *sandbox.Volume
	var err error
	switch {
	case sandbox.ValidID(ref):
		v, err = tx.Volumes().Get(sandbox.ID(ref))
	case sandbox.CheckKey("volume", ref) == nil:
		v, err = tx.Volumes().ByName(project, ref)
	default:
		return nil, noVolume(ref)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	if err != nil || v.Project != project || v.State != sandbox.VolumeReady {
		return nil, noVolume(ref)
	}
	return v, nil
}

func noVolume(ref string) *fault.Error {
	return fault.New(fault.NotFound, "there is no volume %q", sandbox.Clip(ref, 80)).
		WithRemedy("list the volumes to see which there are, or create one")
}
