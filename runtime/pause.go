// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"

	"sandpit.dev/sandbox"
)

// Pauser is what instances are that can be frozen with their memory kept. A
// frozen instance is up: nothing of it runs, its agent neither, so Dial connects
// and nobody answers. Stop and Remove work on it as ever. It stays frozen when
// the server ends, and Open finds it so.
type Pauser interface {
	// Pause freezes every process of the instance, and returns when none runs
	// any more. Then it gives memory that the instance can do without back to
	// the host, where the kernel can. Twice is fine. On an instance that is down
	// it is fault.State. After an error nothing is frozen.
	Pause(ctx context.Context) error
	// Resume lets them go on. Twice is fine, and so is one that was never
	// paused. On an instance that is down it is fault.State.
	Resume(ctx context.Context) error
	// Paused reports whether it is frozen by Pause, also by that of an earlier
	// server. Halves (a freeze that was not asked for by Pause, or one that was
	// not completed) are undone by Open and never seen here.
	Paused() bool
}

// Resizer is what instances are whose limits can change while they are up.
type Resizer interface {
	// Resize makes l the instance's limits, up or down: CPU, memory, pids and disk.
	// A memory limit under what is in use is fault.Conflict, and changes
	// nothing. A disk limit under what is in use stops it from growing.
	Resize(ctx context.Context, l sandbox.Limits) error
}
