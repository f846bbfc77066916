// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Driver makes instances on a [Host].
type Driver struct{ host *Host }

var _ runtime.Driver = (*Driver)(nil)

// Probe claims only what the fake keeps.
func (d *Driver) Probe(ctx context.Context) (runtime.Capabilities, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	no := func(what string) error {
		return fault.New(fault.Unsupported, "the memory runtime is a fake: it %s", what).
			WithRemedy("use another runtime")
	}
	return runtime.Capabilities{
		runtime.Isolation:      no("runs commands on the host itself"),
		runtime.LimitCPU:       no("limits no CPU"),
		runtime.LimitMemory:    no("limits no memory"),
		runtime.LimitSockets:   no("limits no memory"),
		runtime.LimitPids:      no("limits no processes"),
		runtime.LimitDisk:      no("limits no disk"),
		runtime.KillTree:       no("finds the processes of a command by their session only"),
		runtime.TrackChanges:   no("does not tell what a command changed"),
		runtime.WatchFiles:     nil,
		runtime.RootUser:       no("has one user, the host's"),
		runtime.Sudo:           no("has one user, the host's"),
		runtime.RootDisk:       no("has no root of its own"),
		runtime.Reopen:         nil,
		runtime.Pause:          nil,
		runtime.Resize:         nil,
		runtime.Snapshots:      nil,
		runtime.CheapSnapshots: no("copies whole disks"),
		runtime.Volumes:        nil,
		runtime.VolumeParts:    nil,
		runtime.Network:        no("has no network of its own"),
	}, nil
}

// Create makes the instance's directory and starts its agent.
func (d *Driver) Create(ctx context.Context, spec runtime.Spec) (runtime.Instance, error) {
	if !sandbox.ValidID(string(spec.ID)) {
		return nil, fault.InvalidField("id", "%q is not a valid sandbox id", sandbox.Clip(string(spec.ID), 40))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := d.host.register(spec.ID)
	if err != nil {
		return nil, err
	}
	defer m.verb.Unlock()
	if err = m.fill(spec.From); err == nil {
		err = m.startLocked(spec)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = m.removeLocked()
		return nil, err
	}
	return &instance{m}, nil
}

// Open finds an instance by its id; the fake needs no data of its own.
func (d *Driver) Open(ctx context.Context, h runtime.Handle) (runtime.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := d.host.find(h.ID)
	if err != nil {
		return nil, err
	}
	return &instance{m}, nil
}

// List reads the host's directory: each entry that is named as an id is an
// instance, or a half that a crash left.
func (d *Driver) List(ctx context.Context) ([]runtime.Handle, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ids, err := d.host.ids(".")
	if err != nil {
		return nil, err
	}
	var handles []runtime.Handle
	for _, id := range ids {
		handles = append(handles, runtime.Handle{ID: id})
	}
	return handles, nil
}

// Close does nothing: instances are the host's.
func (d *Driver) Close() error { return nil }
