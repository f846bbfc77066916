// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"math"

	"sandpit.dev/fault"
)

// Limits is what the commands of one sandbox may use together. A zero field
// asks for the default.
type Limits struct {
	CPU      float64 `json:"cpu"`       // cores, 0.05 to 64
	MemoryMB int     `json:"memory_mb"` // MiB, 16 to 1048576; no swap on top
	DiskMB   int     `json:"disk_mb"`   // MiB of root changes and workspace together, 16 to 1048576
	Pids     int     `json:"pids"`      // processes and threads, 8 to 32768
}

// DefaultLimits are those of a sandbox that asks for none.
func DefaultLimits() Limits { return Limits{CPU: 1, MemoryMB: 512, DiskMB: 1024, Pids: 256} }

// Bounds of the fields of [Limits].
const (
	MinCPU, MaxCPU           = 0.05, 64.0
	MinMemoryMB, MaxMemoryMB = 16, 1 << 20
	MinDiskMB, MaxDiskMB     = 16, 1 << 20
	MinPids, MaxPids         = 8, 32768
)

// MaxLimits returns the largest limits that any server allows.
func MaxLimits() Limits {
	return Limits{CPU: MaxCPU, MemoryMB: MaxMemoryMB, DiskMB: MaxDiskMB, Pids: MaxPids}
}

// Or fills the zero fields of l from def.
func (l Limits) Or(def Limits) Limits {
	if l.CPU == 0 {
		l.CPU = def.CPU
	}
	if l.MemoryMB == 0 {
		l.MemoryMB = def.MemoryMB
	}
	if l.DiskMB == 0 {
		l.DiskMB = def.DiskMB
	}
	if l.Pids == 0 {
		l.Pids = def.Pids
	}
	return l
}

// Bounds of [Limits.LogBytes].
const (
	minLogMB = 16
	maxLogMB = 512
)

// LogBytes returns how many bytes the kept output of all its processes may take beside the disk:
// a quarter of the disk's limit, from 16 to 512 MiB.
func (l Limits) LogBytes() int64 {
	return int64(min(max(l.Or(DefaultLimits()).DiskMB/4, minLogMB), maxLogMB)) << 20
}

// Check checks every field against its bounds; the error is Invalid and names
// them all. The names are the wire's: cpu_cores, memory_mb, disk_mb, pids.
func (l Limits) Check() error { return l.CheckUpTo(MaxLimits()) }

// CheckUpTo is Check with the bounds above that a server has.
func (l Limits) CheckUpTo(most Limits) error {
	var bad []fault.Field
	add := func(err *fault.Error) {
		bad = append(bad, err.Fields...)
	}
	if math.IsNaN(l.CPU) || l.CPU < MinCPU || l.CPU > most.CPU {
		add(fault.InvalidField("cpu_cores", "%v is outside %v to %v cores", l.CPU, MinCPU, most.CPU))
	}
	for _, f := range []struct {
		name           string
		v, least, most int
		unit           string
	}{
		{"memory_mb", l.MemoryMB, MinMemoryMB, most.MemoryMB, "MiB"},
		{"disk_mb", l.DiskMB, MinDiskMB, most.DiskMB, "MiB"},
		{"pids", l.Pids, MinPids, most.Pids, "processes"},
	} {
		if f.v < f.least || f.v > f.most {
			add(fault.InvalidField(f.name, "%d is outside %d to %d %s", f.v, f.least, f.most, f.unit))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return &fault.Error{Code: fault.Invalid, Message: bad[0].Name + ": " + bad[0].Message, Fields: bad}
}
