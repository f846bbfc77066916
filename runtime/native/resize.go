// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Resizer = (*Instance)(nil)

// Resize changes the limits of what runs. See [runtime.Resizer]. Limits that this
// host has no means for are left out, as in Create.
func (i *Instance) Resize(ctx context.Context, l sandbox.Limits) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	up, err := i.running()
	if err != nil {
		return err
	}
	before, err := up.group.Limits()
	if err == nil {
		err = up.group.SetLimits(i.d.enforceable(l))
	}
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(fault.State, err, "sandbox %s is not running", i.id)
	}
	if err != nil {
		return err
	}
	i.d.checkpoint("resize.groups")
	if err := i.limitDisk(l); err != nil {
		if back := up.group.SetLimits(before); back != nil {
			err = errors.Join(err, back)
		}
		return err
	}
	return nil
}

// limitDisk makes the limit that l has the disk's, where this host can.
func (i *Instance) limitDisk(l sandbox.Limits) error {
	if i.d.layers.Info().DiskLimit != nil {
		return nil
	}
	return i.d.layers.Resize(string(i.id), int64(l.DiskMB)<<20)
}
