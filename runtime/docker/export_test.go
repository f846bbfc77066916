// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"

	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
)

// StartAlone starts a container that is down as a server does that ends then.
func StartAlone(ctx context.Context, i runtime.Instance, spec runtime.Spec) error {
	it := i.(*Instance) //nolint:forcetypeassert // it is the driver's
	if err := it.prepare(ctx, spec); err != nil {
		return err
	}
	return it.d.engine.StartContainer(ctx, it.its())
}

// SetDepth sets from how many layers on those of a snapshot are made one.
func (d *Driver) SetDepth(n int) { d.depth = n }

// RootOf returns who a container's root is on the host.
func RootOf(info engineapi.Info) (uid, gid int, err error) {
	u, err := rootOf(info)
	return u.uid, u.gid, err
}

// ContainerSees reports whether a container of the Engine's sees a file.
func (d *Driver) ContainerSees(ctx context.Context, path string, size int64) (bool, error) {
	return d.containerSees(ctx, path, size)
}

// Clocked returns options with a clock of calls to the Engine.
func Clocked(o Options, clock engineapi.Clock) Options {
	o.clock = clock
	return o
}

// Clock returns a kind with a clock of calls to the Engine.
func Clock(k Kind, clock engineapi.Clock) *Kind {
	k.clock = clock
	return &k
}

// AgentThreads are those that the agent keeps.
const AgentThreads = agentThreads
