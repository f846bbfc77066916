// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package boot

// The files that tell the sandbox's limits and use instead of the host's, below the directory of
// [Files].Facts. The first are at their places, the others lie over the kernel's own.
const (
	OnlineFact   = "devices/system/cpu/online"
	PossibleFact = "devices/system/cpu/possible"
	PresentFact  = "devices/system/cpu/present"
	MemoryFact   = "fs/proc/meminfo"
	StatFact     = "fs/proc/stat"
	LoadFact     = "fs/proc/loadavg"
)
