// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestrterms

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// DefaultVolumeMB is the size of a volume of which none is said.
const DefaultVolumeMB = 10 * 1024

// Make makes a sandbox, with the volume of that name at [Persist] unless it is nil. A volume that there was not is made
// first, and deleted again where the sandbox cannot be made.
func Make(ctx context.Context, s *service.Services, c access.Caller, r engine.CreateRequest, vol *string) (*sandbox.Sandbox, error) {
	undo := func() {}
	if vol != nil {
		var err error
		if undo, err = volumeFor(ctx, s.Volumes, c, *vol); err != nil {
			return nil, err
		}
		r.Mounts = []volume.Mount{{Volume: *vol, Path: Persist}}
	}
	box, _, err := s.Sandboxes.Create(ctx, c, r)
	if err != nil {
		undo()
	}
	return box, err
}

// volumeFor makes a volume where there is none of that name. undo deletes it again, unless another sandbox has it by then.
func volumeFor(ctx context.Context, all service.Volumes, c access.Caller, name string) (undo func(), err error) {
	undo = func() {}
	if _, err = all.Volume(ctx, c, name); !fault.Is(err, fault.NotFound) {
		return undo, err
	}
	if err := sandbox.CheckKey("volume", name); err != nil {
		return undo, err
	}
	v, err := all.CreateVolume(ctx, c, volume.Request{Name: name, SizeMB: DefaultVolumeMB})
	switch {
	case fault.Is(err, fault.Exists): // another create was faster
		return undo, nil
	case err != nil:
		return undo, err
	}
	return func() { _ = all.DeleteVolume(context.WithoutCancel(ctx), c, string(v.ID)) }, nil // one that is in use stays
}

// Resume has what is paused go on, and starts what is stopped, which clients are told is paused.
func Resume(ctx context.Context, all service.Sandboxes, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	s, err := all.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	if s.State == sandbox.Stopped || s.State == sandbox.Archived || s.State == sandbox.Failed {
		return all.Start(ctx, c, ref)
	}
	return all.Resume(ctx, c, ref)
}
