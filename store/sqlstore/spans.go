// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"math"
	"strconv"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// never is the date, in microseconds, by which what never expires is sorted.
const never = math.MaxInt64

// sorting is how sandboxes are sorted by one thing. Only creation has an index: the others change with commands, or are read
// seldom, and an index would be written with each change of a row. See TestSoakSortsOfManySandboxes for what that costs.
type sorting struct {
	column string
	kind   byte // of its cursors
	number func(*sandbox.Sandbox) int64
}

func sortingBy(by store.SandboxSort) sorting {
	switch by {
	case store.SortActivity:
		return sorting{"last_activity", 'A', func(s *sandbox.Sandbox) int64 { return micros(s.LastActivity) }}
	case store.SortExpiry:
		return sorting{"(CASE expires_at WHEN 0 THEN " + strconv.FormatInt(never, 10) + " ELSE expires_at END)", 'X', func(s *sandbox.Sandbox) int64 {
			if s.ExpiresAt.IsZero() {
				return never
			}
			return micros(s.ExpiresAt)
		}}
	case store.SortCPU:
		return sorting{"cpu", 'C', func(s *sandbox.Sandbox) int64 { return int64(math.Float64bits(s.Limits.CPU)) }}
	case store.SortMemory:
		return sorting{"memory_mb", 'M', func(s *sandbox.Sandbox) int64 { return int64(s.Limits.MemoryMB) }}
	case store.SortDisk:
		return sorting{"disk_mb", 'D', func(s *sandbox.Sandbox) int64 { return int64(s.Limits.DiskMB) }}
	}
	return sorting{"created_at", cursorSandboxes, func(s *sandbox.Sandbox) int64 { return micros(s.CreatedAt) }}
}

// value is what the column is compared with for the number of a cursor.
func (o sorting) value(number int64) any {
	if o.kind == 'C' {
		return math.Float64frombits(uint64(number))
	}
	return number
}

// spans adds the conditions of [store.SandboxSpans].
func spans(w *where, s *store.SandboxSpans) {
	for _, t := range []struct {
		column string
		span   store.TimeSpan
	}{{"created_at", s.Created}, {"last_activity", s.Active}, {"expires_at", s.Expires}} {
		if t.column == "expires_at" && t.span.Bounded() {
			w.and("expires_at > 0")
		}
		if !t.span.From.IsZero() {
			w.and(t.column + " >= " + w.arg(micros(t.span.From)))
		}
		if !t.span.To.IsZero() {
			w.and(t.column + " <= " + w.arg(micros(t.span.To)))
		}
	}
	for _, a := range []struct {
		column string
		span   store.AmountSpan
	}{{"cpu", s.CPU}, {"memory_mb", s.MemoryMB}, {"disk_mb", s.DiskMB}} {
		if a.span.From != 0 {
			w.and(a.column + " >= " + w.arg(a.span.From))
		}
		if a.span.To != 0 {
			w.and(a.column + " <= " + w.arg(a.span.To))
		}
	}
}
