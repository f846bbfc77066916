// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"fmt"
	"net/netip"

	"sandpit.dev/agent/traffic"
)

// Step makes the sockets that the sandbox's traffic comes to, and gives them to the agent, which waits for them at an abstract
// socket of that name. It runs in the agent's network namespace, with CAP_NET_ADMIN, and in another one of processes. reached is where the
// agent is reached over another interface than the loopback: IP:PORT, or "" where it is not.
func Step(name, reached string) error {
	var at netip.AddrPort
	if reached != "" {
		var err error
		if at, err = netip.ParseAddrPort(reached); err != nil {
			return fmt.Errorf("where the agent is reached: %w", err)
		}
	}
	return traffic.Step(name, at)
}
