// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Mount is a volume that a sandbox shall have.
type Mount struct {
	Volume   string // its name, or its id
	Path     string // where, inside: absolute and clean
	Sub      string // a directory of the volume, relative; empty: the whole volume
	ReadOnly bool
}

// Mounts checks what is asked for, for a sandbox of a runtime, and finds the volumes.
func (k *Keeper) Mounts(ctx context.Context, project, runtimeName string, asked []Mount) ([]sandbox.Mount, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	if len(asked) > sandbox.MaxMounts {
		return nil, fault.InvalidField("mounts", "has %d volumes; a sandbox mounts at most %d", len(asked), sandbox.MaxMounts)
	}
	if _, err := k.driver(runtimeName); err != nil {
		return nil, err
	}
	out := make([]sandbox.Mount, 0, len(asked))
	err := k.core.Store.View(ctx, func(tx store.Tx) error {
		for i, r := range asked {
			field := fmt.Sprintf("mounts[%d].volume", i)
			if r.Volume == "" {
				return fault.InvalidField(field, "is empty; name a volume, or give its id")
			}
			v, err := byRef(tx, project, r.Volume)
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

// Mountable reports, in the transaction that begins to mount them, by fault.NotFound that one of a
// sandbox's volumes is there no more. Who deletes one looks at its users in a transaction, too.
func Mountable(tx store.Tx, project string, mounts []sandbox.Mount) error {
	for _, m := range mounts {
		v, err := tx.Volumes().Get(m.Volume)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		if err != nil || v.Project != project || v.State != sandbox.VolumeReady {
			return NotFound(m.Name)
		}
	}
	return nil
}

// Paths lists where volumes go.
func Paths(mounts []Mount) (all []string) {
	for _, m := range mounts {
		all = append(all, m.Path)
	}
	return all
}
