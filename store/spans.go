// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"time"
)

// SandboxSort is what sandboxes are listed by, and by their ids where that is the same.
type SandboxSort string

// What sandboxes are listed by. The empty one is SortCreated.
const (
	SortCreated  SandboxSort = "created_at"
	SortActivity SandboxSort = "last_activity_at"
	SortExpiry   SandboxSort = "expires_at" // those that never do come after all dates
	SortCPU      SandboxSort = "cpu_cores"
	SortMemory   SandboxSort = "memory_mb"
	SortDisk     SandboxSort = "disk_mb"
)

// SandboxSorts returns all of them.
func SandboxSorts() []SandboxSort {
	return []SandboxSort{SortCreated, SortActivity, SortExpiry, SortCPU, SortMemory, SortDisk}
}

// Valid reports whether s is one of them, or empty.
func (s SandboxSort) Valid() bool { return s == "" || slices.Contains(SandboxSorts(), s) }

// TimeSpan selects times, both ends included; a zero end is open.
type TimeSpan struct{ From, To time.Time }

// Bounded reports whether the span leaves anything out.
func (s TimeSpan) Bounded() bool { return !s.From.IsZero() || !s.To.IsZero() }

// AmountSpan likewise selects amounts.
type AmountSpan struct{ From, To float64 }

// SandboxSpans selects sandboxes by what they have. Zero fields select all.
type SandboxSpans struct {
	Created, Active TimeSpan
	Expires         TimeSpan // what never expires is in none but the open one
	CPU             AmountSpan
	MemoryMB        AmountSpan
	DiskMB          AmountSpan
}

// Bounded reports whether the spans leave anything out.
func (s *SandboxSpans) Bounded() bool {
	return s.Created.Bounded() || s.Active.Bounded() || s.Expires.Bounded() ||
		s.CPU != AmountSpan{} || s.MemoryMB != AmountSpan{} || s.DiskMB != AmountSpan{}
}
