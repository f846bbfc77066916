// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"slices"
	"strings"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// maxPageNo is the greatest number of a page. The last row that can be reached by number is far
// beyond what one server holds; a cursor reaches all.
const maxPageNo = 1_000_000

// Page reads which page of a list is asked for into q, and returns its number; nil: it is one by cursor.
func Page(sp *httpapi.Spellings, q *engine.SandboxesRequest, normal int, limit, size *int, cursor *string, number *int, order *string) (page *int) {
	q.Limit = normal
	if n := httpapi.Either(sp, "limit", limit, "page_size", size); n != nil {
		if *n < 1 || *n > engine.MaxPage {
			sp.Add(sp.Name("limit"), "%d is outside 1 to %d", *n, engine.MaxPage)
		}
		q.Limit = *n
	}
	page = new(1)
	switch {
	case cursor != nil && number != nil:
		sp.Add("page", "and cursor cannot both be given")
		sp.Add("cursor", "and page cannot both be given")
	case cursor != nil:
		q.Cursor, page = *cursor, nil
	case number != nil:
		if *number < 1 || *number > maxPageNo {
			sp.Add("page", "%d is outside 1 to %d", *number, maxPageNo)
		}
		page, q.Offset = number, (*number-1)*q.Limit
	}
	q.Oldest = Ascending(sp, order)
	return page
}

// States reads both spellings of the filter. Deleted sandboxes have no record.
func States(sp *httpapi.Spellings, status, state []string) (out []sandbox.State) {
	if status != nil && state != nil && !slices.Equal(status, state) {
		sp.Disagree("status", strings.Join(status, ","), "state", strings.Join(state, ","))
	}
	name, asked := "status", status
	if status == nil {
		name, asked = "state", state
	}
	for _, s := range asked {
		if st := sandbox.State(s); st.Valid() && st != sandbox.Deleted {
			out = append(out, st)
			continue
		}
		sp.Add(name, "%q is not a valid state; the states are %s", sandbox.Clip(s, 80), strings.Join(shape.LiveStates(), ", "))
	}
	return out
}
