// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"

	"sandpit.dev/sandbox"
)

// Pauser is implemented by instances that can be frozen with their memory kept. A frozen instance
// is up, but nothing in it runs, including its agent: Dial connects and nothing answers. Stop and
// Remove work as usual. It stays frozen when the server ends, and Open finds it so.
type Pauser interface {
	// Pause freezes every process of the instance, and returns when none runs any more. Then it
	// returns memory that the instance can do without to the host, where the kernel can. Calling
	// it twice is fine. On an instance that is down it is fault.State. After an error nothing is
	// frozen.
	Pause(ctx context.Context) error
	// Resume lets the processes continue. Calling it twice is fine, and so is calling it on an
	// instance that was never paused. On one that is down it is fault.State.
	Resume(ctx context.Context) error
	// Paused reports whether the instance is frozen by Pause, also by that of an earlier server.
	// Incomplete freezes, and those not made by Pause, are undone by Open and never seen here.
	Paused() bool
}

// Helper is implemented by instances whose runtime has programs of its own inside.
type Helper interface {
	// Programs is the directory of these, which goes before all others where programs are looked for. It is constant.
	Programs() string
}

// Namer is implemented by instances whose host name can change while they are up.
type Namer interface {
	// SetHostname sets it, as [Spec].Hostname does.
	SetHostname(ctx context.Context, name string) error
}

// Resizer is implemented by instances whose limits can change while they are up.
type Resizer interface {
	// Resize sets the instance's limits, up or down: CPU, memory, pids and disk. A memory limit
	// below current use is fault.Conflict, and changes nothing. A disk limit below current use
	// stops it from growing.
	Resize(ctx context.Context, l sandbox.Limits) error
}
