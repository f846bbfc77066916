// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/sandbox"
)

// Instant reads a time in the form of RFC 3339; zero where none is given.
func Instant(sp *httpapi.Spellings, name string, s *string) time.Time {
	if s == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, *s)
	if err != nil {
		sp.Add(name, "%q is not a valid time such as 2026-01-31T12:00:00Z", sandbox.Clip(*s, 80))
	}
	return t
}

// Ascending reads sort_order.
func Ascending(sp *httpapi.Spellings, order *string) bool {
	if order == nil || *order == "desc" {
		return false
	}
	if *order != "asc" {
		sp.Add("sort_order", "%q is neither asc nor desc", sandbox.Clip(*order, 80))
	}
	return true
}
