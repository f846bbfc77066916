// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"sync"

	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Forker = (*Driver)(nil)

// Fork makes an instance with the disk of another. See [runtime.Forker]. The other stands
// still while the disk is copied, and process 1 of the new one starts meanwhile.
func (d *Driver) Fork(ctx context.Context, of sandbox.ID, spec runtime.Spec, copied func()) (runtime.Instance, error) {
	copied = sync.OnceFunc(copied) // also where a create does not come as far
	defer copied()
	source, err := d.instance(ctx, of)
	if err != nil {
		return nil, err
	}
	spec.From = of // its disk is a copy
	return d.create(ctx, spec, func() (*layer.Layer, error) {
		defer copied()
		return source.copyDisk(ctx, spec)
	})
}

// copyDisk makes a layer of the instance's as it is now.
func (i *Instance) copyDisk(ctx context.Context, spec runtime.Spec) (*layer.Layer, error) {
	i.verb.Lock()
	defer i.verb.Unlock()
	thaw, err := i.still(ctx)
	if err != nil {
		return nil, err
	}
	l, err := i.d.layers.Fork(ctx, string(spec.ID), string(i.id), int64(spec.Limits.DiskMB)<<20)
	i.d.checkpoint("fork.copied")
	if frozen := thaw(); err == nil && frozen != nil {
		_ = l.Close()
		_ = i.d.layers.Remove(string(spec.ID))
		l, err = nil, frozen
	}
	return l, err
}
