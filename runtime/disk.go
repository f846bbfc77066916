// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"

	"sandpit.dev/fault"
)

// DiskReporter is implemented by drivers that keep the disks of all instances in one place. Its
// answers were measured a moment ago and cost nothing.
type DiskReporter interface {
	// Disk returns how full that place is.
	Disk() Disk
}

// Disk says how full the place of all disks is.
type Disk struct {
	SizeBytes, FreeBytes         int64 // of the disk that all instances share
	HostSizeBytes, HostFreeBytes int64 // of the host's, which that lies on
	RoomBytes                    int64 // what instances may still take together
	Full                         error // why no new instance is made, fault.Full; nil: they are
	Failed                       error // why no disk can be used, fault.Unavailable; nil: they can
}

// DiskLimiter is implemented by drivers for which it depends on the host whether Limits.DiskMB holds.
type DiskLimiter interface {
	// MayLimitDisk returns nil where it holds, else why not, fault.Unsupported. It refuses then what a
	// caller asked for; a default limit has no effect.
	MayLimitDisk(ctx context.Context) error
}

// DiskTeller is implemented by instances that know which disk is full when a write in them fails
// for lack of space: inside, the limit of one disk and that of all together look alike.
type DiskTeller interface {
	FullDisk() fault.Disk
}
