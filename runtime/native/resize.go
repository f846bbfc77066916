// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"time"

	"sandpit.dev/agent"
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
	i.limitLogs(ctx, l)
	return nil
}

// limitLogs tells the agent how much the output may take that it keeps, with the limits l. One
// that does not answer has it from its next start on; one that is paused, once it goes on.
func (i *Instance) limitLogs(ctx context.Context, l sandbox.Limits) {
	patience := time.Duration(agentPatience)
	if i.Paused() {
		patience = pausedPatience
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := agent.NewClient(i.Dial).LimitLogs(limit, l.LogBytes()); err != nil {
		i.d.log.Debug("a sandbox's agent was not told how much output to keep", "sandbox", i.id, "error", err)
	}
}

// pausedPatience is how long a call waits to be written to the socket of an agent that is paused.
const pausedPatience = 10 * time.Millisecond

// limitDisk makes the limit that l has the disk's, where this host can.
func (i *Instance) limitDisk(l sandbox.Limits) error {
	if i.d.layers.Info().DiskLimit != nil {
		return nil
	}
	return i.d.layers.Resize(string(i.id), int64(l.DiskMB)<<20)
}
