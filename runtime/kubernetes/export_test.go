// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"io"
	"time"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// SetClaimPatience changes how long a claim gets to be bound.
func (d *Driver) SetClaimPatience(t time.Duration) { d.claimPatience = t }

// SetStartPatience changes how long a pod gets to run.
func (d *Driver) SetStartPatience(t time.Duration) { d.startPatience = t }

// SetNodePatience changes how long a node may take to renew its lease.
func (d *Driver) SetNodePatience(t time.Duration) {
	d.nodes.mu.Lock()
	defer d.nodes.mu.Unlock()
	d.nodes.patience = t
}

// Swept is closed when what earlier servers left of snapshots is removed.
func (d *Driver) Swept() <-chan struct{} { return d.swept }

// SetMinor has the driver take the cluster for one of another version.
func (d *Driver) SetMinor(minor int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.minor = minor
}

// Promise has the disk be filled from a snapshot at the next start.
func Promise(i runtime.Instance, id sandbox.ID) error { return i.(*Instance).promiseSnapshot(id) }

// ReadDisk reads the disk as it is.
func ReadDisk(ctx context.Context, i runtime.Instance, use func(io.Reader) error) error {
	in := i.(*Instance)
	end, err := in.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return in.readDisk(ctx, use)
}

// LeaveReader has a pod run that reads the disk of what is down, as a server leaves it that ends meanwhile.
func LeaveReader(ctx context.Context, i runtime.Instance) error {
	in := i.(*Instance)
	_, public, err := handshake.NewPair()
	if err != nil {
		return err
	}
	image, err := in.d.agentImage(ctx)
	if err != nil {
		return err
	}
	p, err := in.d.readerPod(in.id, image, public)
	if err == nil {
		_, err = in.run(ctx, p, nil)
	}
	return err
}

// AgentOf is the reference of the image with the agent.
func AgentOf(d *Driver) string { return d.agent }

// AgentThreads is how many threads an agent keeps.
const AgentThreads = agentThreads
