// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"time"
)

// Meter is implemented by instances whose host counts what they use. Reading it asks nothing of
// what is inside, does not wait for other calls, and costs a few small reads.
type Meter interface {
	// Use returns what the instance uses now. A frozen instance answers too. One that is down, or
	// goes down meanwhile, is fault.State.
	Use(ctx context.Context) (Use, error)
}

// Use is what an instance uses. A figure that the host does not count is negative.
type Use struct {
	CPU         time.Duration // of processors, since it came up; it never falls while it is up
	MemoryBytes int64         // what counts against Limits.MemoryMB, the page cache included
	MemoryPeak  int64         // the most of that since it came up, in bytes
	DiskBytes   int64         // of its writable layer, without the image and volumes
	Tasks       int64         // processes and threads, as Limits.Pids counts them
}

// ProcessMeter is implemented by instances whose host can tell their processes apart. Reading them asks nothing of what is
// inside, and does not wait for other calls.
type ProcessMeter interface {
	// Processes returns what runs now, in no order, of very many a part. A frozen instance answers too. One that is down, or
	// goes down meanwhile, is fault.State.
	Processes(ctx context.Context) ([]Process, error)
}

// Process is a process of an instance, as its host tells of it.
type Process struct {
	PID         int           // inside
	Parent      int           // likewise; 0: none of those that run inside, or not known
	Name        string        // which the process chose: any bytes, at most 64
	State       string        // running, sleeping, waiting (for a disk), stopped, zombie or other
	CPU         time.Duration // of processors, since it began
	Age         time.Duration
	MemoryBytes int64 // of its own and shared, that are in memory
	Threads     int
}
