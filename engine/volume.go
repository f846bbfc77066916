// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// CreateVolume makes an empty volume. A name that the project has is fault.Exists.
func (e *Engine) CreateVolume(ctx context.Context, c access.Caller, r volume.Request) (volume.Info, error) {
	if err := e.enterWork(c, access.SandboxesWrite); err != nil {
		return volume.Info{}, err
	}
	defer e.group.Leave()
	if err := e.volumes.Check(r); err != nil {
		return volume.Info{}, err
	}
	if err := e.secrets.Refuse(ctx, c.Project, "", secrets.Plain{"name": {r.Name}}); err != nil {
		return volume.Info{}, err
	}
	var got volume.Info
	err := e.work(ctx, volume.Bound, func(ctx context.Context) (err error) {
		got, err = e.volumes.Create(ctx, c.Project, r, core.ActorOf(c))
		return err
	}, nil)
	if err != nil {
		return volume.Info{}, err // got may be written to still
	}
	return got, nil
}

// Volumes returns the project's volumes, by name.
func (e *Engine) Volumes(ctx context.Context, c access.Caller) ([]volume.Info, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.Leave()
	return e.volumes.List(ctx, c.Project)
}

// Volume returns one, by its name or its id.
func (e *Engine) Volume(ctx context.Context, c access.Caller, ref string) (volume.Info, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return volume.Info{}, err
	}
	defer e.group.Leave()
	return e.volumes.Get(ctx, c.Project, ref)
}

// DeleteVolume deletes one, with all that is in it. While any sandbox mounts it, up
// or down, it is fault.Conflict and names them.
func (e *Engine) DeleteVolume(ctx context.Context, c access.Caller, ref string) error {
	if err := e.enter(c, access.SandboxesWrite); err != nil {
		return err
	}
	defer e.group.Leave()
	return e.work(ctx, volume.Bound, func(ctx context.Context) error {
		return e.volumes.Delete(ctx, c.Project, ref, core.ActorOf(c))
	}, nil)
}

// patchMounts finds out what a patch makes of a sandbox's mounts.
func (e *Engine) patchMounts(ctx context.Context, s *sandbox.Sandbox, p *update.Patch) error {
	if p.Mounts == nil {
		return nil
	}
	mounts, err := e.volumes.Mounts(ctx, s.Project, s.Runtime, *p.Mounts)
	if err != nil || slices.Equal(mounts, s.Mounts) {
		return err
	}
	if s.State != sandbox.Stopped {
		return fault.New(fault.State, "mounts can change only while the sandbox is stopped; %s is %s", s.Ref(), s.State).
			WithRemedy("stop it (stop %s), change them, and start it again", s.Ref())
	}
	p.Volumes = &mounts
	return nil
}
