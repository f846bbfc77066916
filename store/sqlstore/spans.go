// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// never is the date, in microseconds, by which what never expires is sorted.
const never = math.MaxInt64

// sorting is how sandboxes are sorted by one thing. Creation has an index of all; the others have one of the stopped ones
// each, of which there may be many: what is up changes with commands, and an index of it would be written with each. See
// TestSoakSortsOfManySandboxes for what a page costs.
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
		return sorting{"expires_order", 'X', func(s *sandbox.Sandbox) int64 {
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

// ordered is the ORDER BY of a list.
func ordered(column string, oldest bool) string {
	order := " DESC"
	if oldest {
		order = " ASC"
	}
	return " ORDER BY " + column + order + ", id" + order
}

// page is the LIMIT of a page, with one row more to find whether there is a next one.
func (w *where) page(limit, offset int) string {
	text := " LIMIT " + strconv.Itoa(limit+1)
	if offset > 0 {
		text += " OFFSET " + w.arg(int64(offset))
	}
	return text
}

// begin returns what adds the condition of a query's cursor.
func (o sorting) begin(query *store.SandboxQuery) (func(*where), error) {
	if query.Cursor == "" {
		return func(*where) {}, nil
	}
	c, err := parseCursor(query.Cursor, o.kind, query.Project, query.Oldest)
	past := " < "
	if query.Oldest {
		past = " > "
	}
	return func(w *where) {
		w.and("(" + o.column + ", id)" + past + "(" + w.arg(o.value(c.number)) + ", " + w.arg(c.name) + ")")
	}, err
}

// narrow adds the conditions of a query on anything but project and states.
func (q sandboxes) narrow(w *where, query *store.SandboxQuery) {
	if !query.DueBefore.IsZero() {
		due(w, query.DueBefore)
	}
	spans(w, &query.SandboxSpans)
	if query.Image != "" {
		w.and("image = " + w.arg(query.Image))
	}
	if query.ImagePart != "" {
		w.and(q.tx.dialect.contains("lower(image)", w.arg(strings.ToLower(query.ImagePart))))
	}
	if query.NamePart != "" {
		w.and(q.tx.dialect.contains("lower(coalesce(nullif(key, ''), id))", w.arg(strings.ToLower(query.NamePart))))
	}
	if query.ImageDigest != "" {
		w.and("image_digest = " + w.arg(query.ImageDigest))
	}
	if query.Search != "" {
		if strings.Contains(query.Search, searchBreak) {
			w.and("1 = 0") // it would match across two fields, and it is in none
		} else {
			w.and(q.tx.dialect.contains("search", w.arg(strings.ToLower(query.Search))))
		}
	}
	for name, value := range query.Metadata {
		w.and(q.tx.dialect.contains("metadata", w.arg(labelText(name, value))))
	}
}

// sorted adds the condition of a page that is sorted by anything but creation: its rows are among the first of the
// stopped ones, which the index of the sort has in order, and the first of the others, which are few and are sorted.
// No row is read whole but those of the page.
func (q sandboxes) sorted(w *where, query *store.SandboxQuery, by sorting, begin func(*where), limit int) {
	var parts []string
	for _, part := range []struct {
		state  string
		wanted bool
	}{
		{"state = 'stopped'", len(query.States) == 0 || slices.Contains(query.States, sandbox.Stopped)},
		{awake, len(query.States) != 1 || query.States[0] != sandbox.Stopped},
	} {
		if !part.wanted {
			continue
		}
		p := where{args: w.args}
		p.and(part.state)
		if query.Project != "" {
			p.and(unindexed("project") + " = " + p.arg(query.Project))
		}
		in(&p, "state", query.States)
		q.narrow(&p, query)
		begin(&p)
		parts = append(parts, "SELECT id, sort FROM (SELECT id, "+by.column+" AS sort FROM sandboxes"+p.String()+ordered(by.column, query.Oldest)+" LIMIT "+p.arg(int64(limit+1+query.Offset))+") AS part")
		w.args = p.args
	}
	w.and("id IN (SELECT id FROM (" + strings.Join(parts, " UNION ALL ") + ") AS parts" + ordered("sort", query.Oldest) + w.page(limit, query.Offset) + ")")
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
