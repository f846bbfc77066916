// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// diskMaker makes, or opens, the disk of a start.
type diskMaker func() (*layer.Layer, error)

// Create makes an instance and starts it, all or nothing.
func (d *Driver) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	limit := int64(spec.Limits.DiskMB) << 20
	if spec.From == "" {
		return d.create(ctx, spec, func() (*layer.Layer, error) { return d.layers.Create(string(spec.ID), limit) })
	}
	return d.create(ctx, spec, func() (*layer.Layer, error) {
		return d.layers.CreateFrom(ctx, string(spec.ID), string(spec.From), limit)
	})
}

// create makes an instance on the new disk that disk makes: a copy, where spec has a From.
func (d *Driver) create(ctx context.Context, spec runtime.Spec, disk diskMaker) (runtime.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.layers.Room(); err != nil {
		return nil, err
	}
	defer d.inflight.begin()()
	var undo cleanup.Stack
	defer undo.Run()

	i := &Instance{d: d, id: spec.ID}
	if err := d.register(i); err != nil {
		return nil, err
	}
	undo.Add(func() { d.forget(i) })
	i.verb.Lock()
	defer i.verb.Unlock()

	made := false // and not one that was there before
	undo.Add(func() {
		if made {
			d.removeLayer(spec.ID)
		}
	})
	makeDisk := func() (*layer.Layer, error) {
		l, err := disk()
		made = err == nil
		d.checkpoint("create.layer")
		return l, err
	}
	var err error
	if spec.From == "" {
		err = i.start(ctx, spec, makeDisk)
	} else {
		err = i.startOnCopy(ctx, spec, makeDisk)
	}
	if err != nil {
		return nil, err
	}
	undo.Release()
	return i, nil
}

// removeLayer removes the disk of a create that failed. What cannot be removed now has no
// record, by which it is found and removed later.
func (d *Driver) removeLayer(id sandbox.ID) {
	if err := d.layers.Remove(string(id)); err != nil {
		d.log.Error("the disk of a sandbox that was not made is left behind; it is tried again", "sandbox", id, "error", err)
	}
}

// register takes the id of a new instance.
func (d *Driver) register(i *Instance) error {
	if !sandbox.ValidID(string(i.id)) {
		return invalidID(i.id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fault.New(fault.Unavailable, "the server is ending")
	}
	if d.known[i.id] != nil {
		return fault.New(fault.Exists, "sandbox %s exists", i.id)
	}
	d.known[i.id] = i
	return nil
}

func invalidID(id sandbox.ID) error {
	return fault.InvalidField("id", "%q is not a valid sandbox id", sandbox.Clip(string(id), 40))
}

// forget frees the id of an instance of which nothing is left.
func (d *Driver) forget(i *Instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, i.id)
}
