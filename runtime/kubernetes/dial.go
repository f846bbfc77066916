// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"net"
	"strconv"

	"sandpit.dev/fault"
)

// Dial connects to the agent. A handshake by the key of this start says who answers: whatever else may have the pod's address,
// or stand in between, learns nothing.
func (i *Instance) Dial(ctx context.Context) (net.Conn, error) {
	down, err := i.life()
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	calls := i.calls
	i.mu.Unlock()
	if calls == nil {
		return nil, i.keyLost()
	}
	nc, err := calls.DialContext(ctx)
	if err == nil || ctx.Err() != nil {
		return nc, err
	}
	select {
	case <-down:
		return nil, i.notRunning()
	default:
		return nil, err
	}
}

func (i *Instance) keyLost() error {
	return fault.New(fault.Unavailable, "the key of sandbox %s's agent is lost", i.id).WithRemedy("stop the sandbox and start it again")
}

// reachAt returns what connects to the port of an agent whose pod has an address.
func (i *Instance) reachAt(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return i.reach(ctx, address) }
}

func (i *Instance) reach(ctx context.Context, address string) (net.Conn, error) {
	if !i.d.o.Direct {
		return i.d.api.Forward(ctx, i.d.space, objectName(i.id), agentPort)
	}
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(agentPort)))
	if err != nil && ctx.Err() == nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s does not answer at its pod's address %s", i.id, address).
			WithRemedy("see whether a policy keeps the server from it; with kubernetes.reach: forward it is reached through the API server")
	}
	return nc, err
}
