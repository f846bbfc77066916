// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Resizer = (*instance)(nil)

// Resize keeps l, and looks at what the commands' processes hold. The fake limits
// nothing, as its Probe says.
func (i *instance) Resize(ctx context.Context, l sandbox.Limits) error {
	i.m.verb.Lock()
	defer i.m.verb.Unlock()
	r, err := i.m.running()
	if err != nil {
		return err
	}
	processes := r.paused
	if processes == nil {
		if processes, err = gather(ctx, r); err != nil {
			return err
		}
	}
	if used, limit := processes.memory(), int64(l.MemoryMB)<<20; limit > 0 && used > limit {
		return fault.New(fault.Conflict, "the processes of instance %s hold %d MiB, over a limit of %d", i.m.id, used>>20, l.MemoryMB).
			WithRemedy("end some of them first")
	}
	i.m.mu.Lock()
	defer i.m.mu.Unlock()
	i.m.limits = l
	return nil
}
