// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// MountRequest is a volume that a sandbox shall have.
type MountRequest struct {
	Volume   string // its name, or its id
	Path     string // where, inside: absolute and clean
	Sub      string // a directory of the volume, relative; empty: the whole volume
	ReadOnly bool
}

// mounts checks what is asked for, and finds the volumes.
func (e *Engine) mounts(ctx context.Context, project, runtimeName string, asked []MountRequest) ([]sandbox.Mount, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	if len(asked) > sandbox.MaxMounts {
		return nil, fault.InvalidField("mounts", "has %d volumes; a sandbox mounts at most %d", len(asked), sandbox.MaxMounts)
	}
	if _, err := core.Driver[runtime.Volumer](e.core, runtimeName, "volumes"); err != nil {
		return nil, err
	}
	out := make([]sandbox.Mount, 0, len(asked))
	err := e.store.View(ctx, func(tx store.Tx) error {
		for i, r := range asked {
			field := fmt.Sprintf("mounts[%d].volume", i)
			if r.Volume == "" {
				return fault.InvalidField(field, "is empty; name a volume, or give its id")
			}
			v, err := volumeByRef(tx, project, r.Volume)
			if err != nil {
				return err
			}
			if v.Runtime != runtimeName {
				return fault.InvalidField(field, "%s is a volume of the runtime %q, and the sandbox is of %q", v.Name, v.Runtime, runtimeName)
			}
			out = append(out, sandbox.Mount{Volume: v.ID, Name: v.Name, Path: r.Path, Sub: r.Sub, ReadOnly: r.ReadOnly})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := sandbox.CheckMounts(out); err != nil {
		return nil, err
	}
	return out, nil
}

// mountable tells, in the transaction that begins to mount them, whether a sandbox's
// volumes are all there still. Who deletes one looks at its users in a transaction, too.
func mountable(tx store.Tx, project string, mounts []sandbox.Mount) error {
	for _, m := range mounts {
		v, err := tx.Volumes().Get(m.Volume)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		if err != nil || v.Project != project || v.State != sandbox.VolumeReady {
			return noVolume(m.Name)
		}
	}
	return nil
}

// patchMounts finds out what a patch makes of a sandbox's mounts.
func (e *Engine) patchMounts(ctx context.Context, s *sandbox.Sandbox, p *Patch) error {
	if p.Mounts == nil {
		return nil
	}
	mounts, err := e.mounts(ctx, s.Project, s.Runtime, *p.Mounts)
	if err != nil || slices.Equal(mounts, s.Mounts) {
		return err
	}
	if s.State != sandbox.Stopped {
		return fault.New(fault.State, "mounts can change only while the sandbox is stopped; %s is %s", s.Ref(), s.State).
			WithRemedy("stop it (stop %s), change them, and start it again", s.Ref())
	}
	p.mounts = &mounts
	return nil
}
