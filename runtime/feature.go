// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

// Feature names something that a driver may be able to do on a host.
type Feature string

const (
	Isolation    Feature = "isolation"     // nothing of the host, or of another sandbox, can be reached
	LimitCPU     Feature = "limit_cpu"     // Limits.CPU holds
	LimitMemory  Feature = "limit_memory"  // Limits.MemoryMB holds, swap included
	LimitSockets Feature = "limit_sockets" // what sockets hold counts against Limits.MemoryMB
	LimitPids    Feature = "limit_pids"    // Limits.Pids holds
	LimitDisk    Feature = "limit_disk"    // Limits.DiskMB holds
	KillTree     Feature = "kill_tree"     // killing a command ends all that it started, whatever it did
	TrackChanges Feature = "track_changes" // instances are [Tracker]s
	WatchFiles   Feature = "watch"         // instances are [Watcher]s
	RootUser     Feature = "root_user"     // commands can run as the sandbox's own root
	Sudo         Feature = "sudo"          // commands of the user can have others run as that root, see sandbox.Sandbox's Sudo
	RootDisk     Feature = "root_disk"     // what is changed anywhere in a sandbox outlives its stop
	Reopen       Feature = "reopen"        // instances outlive the server
	Pause        Feature = "pause"         // instances are [Pauser]s
	Resize       Feature = "resize"        // instances are [Resizer]s
	Snapshots    Feature = "snapshots"     // the driver is a [Snapshotter]
	// CheapSnapshots: what a snapshot, a rollback and a fork cost does not grow with the disk.
	CheapSnapshots Feature = "cheap_snapshots"
	Volumes        Feature = "volumes"      // the driver is a [Volumer]
	VolumeParts    Feature = "volume_parts" // and mounts directories of volumes, see sandbox.Mount's Sub
	Network        Feature = "network"      // instances are [Networker]s
)

// Features lists every feature, in the order of the printed matrix.
func Features() []Feature {
	return []Feature{Isolation, LimitCPU, LimitMemory, LimitSockets, LimitPids, LimitDisk, KillTree, TrackChanges, WatchFiles, RootUser, Sudo, RootDisk, Reopen, Pause, Resize, Snapshots, CheapSnapshots, Volumes, VolumeParts, Network}
}

// Capabilities says for each feature whether it works: nil, or a
// fault.Unsupported whose message is the reason and whose remedy mends it. A
// feature that is missing from the map is not supported.
type Capabilities map[Feature]error
