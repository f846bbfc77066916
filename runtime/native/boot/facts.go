// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package boot

// The files that tell the sandbox's limits and use instead of the host's, below the directory of
// [Files].Facts. Those below fs/proc lie over the kernel's own, the others are at their places. Below
// fs/cgroup no cgroup is mounted: there are plain files where libraries look for a group's.
const (
	OnlineFact   = "devices/system/cpu/online"
	PossibleFact = "devices/system/cpu/possible"
	PresentFact  = "devices/system/cpu/present" // a link to possible
	MemoryFact   = "fs/proc/meminfo"
	StatFact     = "fs/proc/stat"
	LoadFact     = "fs/proc/loadavg"

	CPUMaxFact        = "fs/cgroup/cpu.max"
	MemoryMaxFact     = "fs/cgroup/memory.max"
	MemoryCurrentFact = "fs/cgroup/memory.current"
)

// Facts lists those that are written.
func Facts() []string {
	return []string{OnlineFact, PossibleFact, MemoryFact, StatFact, LoadFact, CPUMaxFact, MemoryMaxFact, MemoryCurrentFact}
}
