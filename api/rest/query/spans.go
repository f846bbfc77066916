// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// Spans is the part of a list's query that selects sandboxes by what they have, and sorts them.
type Spans struct {
	CreatedFrom  *string  `query:"created_from" doc:"only sandboxes made at that time or after, as 2026-01-31T12:00:00Z; of each _from and _to both are included"`
	CreatedTo    *string  `query:"created_to" doc:"only sandboxes made at that time or before"`
	ActivityFrom *string  `query:"activity_from" doc:"only sandboxes used last at that time or after"`
	ActivityTo   *string  `query:"activity_to" doc:"only sandboxes used last at that time or before"`
	ExpiresFrom  *string  `query:"expires_from" doc:"only sandboxes that expire at that time or after, and none that never do"`
	ExpiresTo    *string  `query:"expires_to" doc:"only sandboxes that expire at that time or before"`
	CPUFrom      *float64 `query:"cpu_cores_from" doc:"only sandboxes with so many cores or more"`
	CPUTo        *float64 `query:"cpu_cores_to" doc:"only sandboxes with so many cores or fewer"`
	MemoryFrom   *float64 `query:"memory_mb_from" doc:"only sandboxes with so much memory or more"`
	MemoryTo     *float64 `query:"memory_mb_to" doc:"only sandboxes with so much memory or less"`
	DiskFrom     *float64 `query:"disk_mb_from" doc:"only sandboxes with so large a disk or a larger one"`
	DiskTo       *float64 `query:"disk_mb_to" doc:"only sandboxes with so large a disk or a smaller one"`
	SortBy       *string  `query:"sort_by" doc:"created_at (the default), last_activity_at, expires_at (what never does last, or first with desc), cpu_cores, memory_mb or disk_mb"`
}

// Read reads it into q. The engine checks what the values are.
func (s *Spans) Read(sp *httpapi.Spellings, q *engine.SandboxesRequest) {
	q.Created = engine.TimeSpan{From: Instant(sp, "created_from", s.CreatedFrom), To: Instant(sp, "created_to", s.CreatedTo)}
	q.Active = engine.TimeSpan{From: Instant(sp, "activity_from", s.ActivityFrom), To: Instant(sp, "activity_to", s.ActivityTo)}
	q.Expires = engine.TimeSpan{From: Instant(sp, "expires_from", s.ExpiresFrom), To: Instant(sp, "expires_to", s.ExpiresTo)}
	q.CPU = engine.AmountSpan{From: number(s.CPUFrom), To: number(s.CPUTo)}
	q.MemoryMB = engine.AmountSpan{From: number(s.MemoryFrom), To: number(s.MemoryTo)}
	q.DiskMB = engine.AmountSpan{From: number(s.DiskFrom), To: number(s.DiskTo)}
	q.Sort = engine.SandboxSort(httpapi.Given(s.SortBy))
	if s.SortBy != nil && (q.Sort == "" || !q.Sort.Valid()) {
		sp.Add("sort_by", "%q is not valid; use one of %v", sandbox.Clip(*s.SortBy, 80), engine.SandboxSorts())
	}
}

func number(n *float64) float64 {
	if n == nil {
		return 0
	}
	return *n
}
