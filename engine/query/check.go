// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package query checks what lists are asked for.
package query

import (
	"time"

	"sandpit.dev/engine/check"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Page checks how many rows a page is asked to have.
func Page(limit int) error {
	var k check.Fields
	page(&k, limit, 0)
	return k.Err()
}

func page(k *check.Fields, limit, offset int) {
	if limit < 0 || limit > store.MaxPage {
		k.Bad("limit", "%d is outside 0 to %d (0: %d)", limit, store.MaxPage, store.DefaultPage)
	}
	if offset < 0 {
		k.Bad("offset", "%d is below 0", offset)
	}
}

// Sandboxes checks what a list of sandboxes is to be of: its page, states, sort, and the spans,
// whose end may not come before their beginning.
func Sandboxes(q *store.SandboxQuery) error {
	var k check.Fields
	page(&k, q.Limit, q.Offset)
	for _, s := range q.States {
		if !s.Valid() {
			k.Bad("state", "%q is not a valid state; the states are %v", sandbox.Clip(string(s), 40), sandbox.States())
			break
		}
	}
	if n := len(q.Metadata); n > check.MaxMetadata {
		k.Bad("metadata", "asks for %d labels; a sandbox has %d at most", n, check.MaxMetadata)
	}
	if !q.Sort.Valid() {
		k.Bad("sort_by", "%q is not valid; use one of %v", sandbox.Clip(string(q.Sort), 40), store.SandboxSorts())
	}
	for field, s := range map[string]store.TimeSpan{"created": q.Created, "activity": q.Active, "expires": q.Expires} {
		if !s.To.IsZero() && s.To.Before(s.From) {
			k.Bad(field+"_to", "%s is before %s_from, %s", s.To.UTC().Format(time.RFC3339), field, s.From.UTC().Format(time.RFC3339))
		}
	}
	for field, s := range map[string]store.AmountSpan{"cpu_cores": q.CPU, "memory_mb": q.MemoryMB, "disk_mb": q.DiskMB} {
		switch {
		case !(s.From >= 0) || !(s.To >= 0): // no number, too
			k.Bad(field+"_from", "and %s_to have to be numbers that are not below 0", field)
		case s.To != 0 && s.To < s.From:
			k.Bad(field+"_to", "%g is below %s_from, %g", s.To, field, s.From)
		}
	}
	return k.Err()
}
