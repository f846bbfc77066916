// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/steer"
	"sandpit.dev/runtime"
)

// Steer brings the instance's traffic to the server; see [runtime.Networker].
func (i *Instance) Steer(context.Context) (runtime.Traffic, error) {
	i.mu.Lock()
	l := i.live
	i.mu.Unlock()
	if l == nil {
		return nil, fault.New(fault.State, "sandbox %s is not running", i.id)
	}
	netns, err := host.OpenNetwork(l.pid, l.pidfd)
	if err != nil {
		return nil, fault.Wrap(fault.State, err, "sandbox %s is not running any more", i.id)
	}
	defer netns.Close()
	s, err := steer.Open(netns)
	if err != nil {
		return nil, err
	}
	return runtime.FromKernel(s), nil
}
