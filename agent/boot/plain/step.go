// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import "sandpit.dev/agent/traffic"

// Step makes the sockets that the sandbox's traffic comes to, and gives them to the agent, which waits for them at an abstract
// socket of that name. It runs in the agent's network namespace, with CAP_NET_ADMIN, and in another one of processes.
func Step(name string) error { return traffic.Step(name) }
