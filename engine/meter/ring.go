// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"math"
	"time"

	"sandpit.dev/runtime"
)

// minutes is how many a ring keeps.
const minutes = 60

// ring is the last hour of one sandbox, by the minute. It has a fixed size, below 2 KiB.
type ring struct {
	at   [minutes]uint32 // Unix time in minutes; zero: nothing
	cpu  [minutes]uint32 // thousandths of a processor
	mem  [minutes]uint32 // KiB, one more than it is; zero: not counted
	disk [minutes]uint32 // likewise
	task [minutes]uint32 // one more than there are; zero: not counted
	in   [minutes]uint32 // bytes a second, one more than there were; zero: not counted
	out  [minutes]uint32 // likewise
	next uint8
}

// Sample is what a sandbox used at one time.
type Sample struct {
	At   time.Time
	CPUs float64 // processors in use, over the time since the sample before; negative: not known
	// Negative where the host does not count them.
	MemoryBytes, MemoryPeak, DiskBytes, Tasks int64
	CPU                                       time.Duration // since it came up; in the latest alone

	Network Network
}

// Network is what a sandbox got from other hosts, and sent to them, in bytes. What is not counted is negative.
type Network struct {
	InRate, OutRate float64 // in a second, over the time since the sample before
	In, Out         int64   // since it came up, or its server did; in the latest alone
}

// noNetwork is that nothing is counted.
var noNetwork = Network{-1, -1, -1, -1}

// carried returns the figures of a sandbox that got and sent so much by now, as the sample before has it of then.
func carried(before Sample, in, out int64, now time.Time) Network {
	n := Network{InRate: -1, OutRate: -1, In: in, Out: out}
	d, was := now.Sub(before.At).Seconds(), before.Network
	if before.At.IsZero() || d <= 0 || was.In < 0 || in < was.In || out < was.Out {
		return n
	}
	n.InRate, n.OutRate = float64(in-was.In)/d, float64(out-was.Out)/d
	return n
}

func sampleOf(at time.Time, u runtime.Use, cpus float64, n Network) Sample {
	return Sample{Network: n, At: at, CPUs: cpus, MemoryBytes: u.MemoryBytes, MemoryPeak: u.MemoryPeak, DiskBytes: u.DiskBytes, Tasks: u.Tasks, CPU: u.CPU}
}

func (r *ring) add(s Sample) {
	n := r.next
	r.at[n] = uint32(s.At.Unix() / 60)
	r.cpu[n] = packed(int64(math.Round(s.CPUs * 1000)))
	r.mem[n], r.disk[n], r.task[n] = packed(s.MemoryBytes>>10), packed(s.DiskBytes>>10), packed(s.Tasks)
	r.in[n], r.out[n] = packed(int64(math.Round(s.Network.InRate))), packed(int64(math.Round(s.Network.OutRate)))
	r.next = (n + 1) % minutes
}

// packed is one more than a number, so that a negative one is zero.
func packed(n int64) uint32 { return uint32(min(max(n+1, 0), math.MaxUint32)) }

// since returns what is kept that is younger than an hour at now, oldest first.
func (r *ring) since(now time.Time) (all []Sample) {
	for i := range minutes {
		n := (int(r.next) + i) % minutes
		at := time.Unix(int64(r.at[n])*60, 0).UTC()
		if r.at[n] == 0 || now.Sub(at) > time.Hour {
			continue
		}
		s := Sample{At: at, CPUs: -1, MemoryBytes: -1, MemoryPeak: -1, DiskBytes: -1, Tasks: int64(r.task[n]) - 1, Network: noNetwork}
		if r.in[n] > 0 && r.out[n] > 0 {
			s.Network.InRate, s.Network.OutRate = float64(r.in[n]-1), float64(r.out[n]-1)
		}
		if r.cpu[n] > 0 {
			s.CPUs = float64(r.cpu[n]-1) / 1000
		}
		if r.mem[n] > 0 {
			s.MemoryBytes = int64(r.mem[n]-1) << 10
		}
		if r.disk[n] > 0 {
			s.DiskBytes = int64(r.disk[n]-1) << 10
		}
		all = append(all, s)
	}
	return all
}
