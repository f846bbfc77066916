// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

// Size is a name for limits of CPU and memory.
type Size struct {
	Name     string
	CPU      float64
	MemoryMB int
}

// Sizes returns the sizes, the smallest first. They are the same through every coat.
func Sizes() []Size {
	return []Size{{"small", 1, 1024}, {"medium", 2, 4096}, {"large", 4, 8192}}
}
