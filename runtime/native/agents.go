// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"

	"sandpit.dev/linux/cgroup"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// agentLimits are the limits of each agent. What it does for its callers, or is brought to do
// by the commands, comes out of these and not out of the limits of the commands, which must
// not be able to keep it from answering. Its Go code has one processor. Of memory it has 4 to
// 12 MB at rest; the rest is what 4,096 calls at a time can hold, 64 MiB of /dev/shm written by
// way of it, and cache of files, which the kernel takes back.
var agentLimits = cgroup.Limits{CPU: 1, MemoryBytes: 384 << 20, PIDs: 4608}

// agentOutOfMemory is why an instance is down whose agent reached its limit of memory.
func agentOutOfMemory() runtime.Exit {
	return runtime.Exit{
		Cause:  sandbox.CauseOOM,
		Detail: fmt.Sprintf("process 1 of the sandbox, which serves its callers, used more than the %d MiB of memory that it has beside the sandbox's limit; start the sandbox again, and ask it for less at a time", agentLimits.MemoryBytes>>20),
	}
}

// removeAgent frees the groups of an agent that has ended.
func (d *Driver) removeAgent(a *cgroup.Agent) {
	if err := a.Remove(context.Background()); err != nil {
		d.log.Warn("the cgroups of an agent are left behind; it is tried again", "error", err)
	}
}
