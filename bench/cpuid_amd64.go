// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"time"
)

// cpuid asks for leaf 0.
func cpuid()

// cpuidCost is how long one CPUID instruction takes, in microseconds. A processor answers it
// in a tenth of one, a hypervisor in 1 to 70: it is one of the few instructions that always
// leave a virtual machine. The loader of a program with shared libraries executes some 70
// (68 for /bin/true with the C library of Debian 12), so a command's time depends on it
// more than on anything that a sandbox does.
func cpuidCost() float64 {
	const rounds, each = 21, 10
	var took []time.Duration
	for range rounds {
		began := time.Now()
		for range each {
			cpuid()
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return float64(took[rounds/2].Nanoseconds()) / each / 1000
}
