// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

var (
	_ runtime.DiskReporter = (*Driver)(nil)
	_ runtime.DiskTeller   = (*Instance)(nil)
)

// Disk returns how full the store is. See [runtime.DiskReporter].
func (d *Driver) Disk() runtime.Disk {
	seen := d.layers.Space()
	disk := runtime.Disk{
		SizeBytes: seen.SizeBytes, FreeBytes: seen.FreeBytes,
		HostSizeBytes: seen.HostSizeBytes, HostFreeBytes: seen.HostFreeBytes, RoomBytes: seen.RoomBytes,
	}
	if seen.Full != nil {
		disk.Full = seen.Full
	}
	if seen.Failed != nil {
		disk.Failed = seen.Failed
	}
	return disk
}

// ownRoom is what a disk that is full has left of its limit at most.
const ownRoom = 1 << 20

// FullDisk returns which disk is full. See [runtime.DiskTeller]. The sandbox's own limit is
// the reason where it is reached, whatever else is full.
func (i *Instance) FullDisk() fault.Disk {
	used, limit, err := i.d.layers.Usage(string(i.id))
	if err == nil && limit > 0 && limit-used < ownRoom {
		return fault.SandboxDisk
	}
	if disk := i.d.layers.FullDisk(); disk != "" {
		return disk
	}
	return fault.SandboxDisk // it had less left than was written at once
}
