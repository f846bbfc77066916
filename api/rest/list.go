// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"slices"
	"strings"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

type listSandboxes struct {
	Status    []string          `query:"status" doc:"only these states, separated by commas"`
	State     []string          `query:"state" doc:"the same as status"`
	Image     *string           `query:"image" doc:"only sandboxes on this image, by its own name"`
	Search    *string           `query:"search" doc:"a part of the id, key or image, letter case ignored"`
	Metadata  map[string]string `query:"metadata.*" doc:"only sandboxes with this label: metadata.NAME=VALUE, once per label"`
	Limit     *int              `query:"limit" doc:"most rows of a page, 1 to 500; default 20"`
	Cursor    *string           `query:"cursor" doc:"next_cursor of the page before"`
	Page      *int              `query:"page" doc:"the page's number from 1, instead of a cursor"`
	PageSize  *int              `query:"page_size" doc:"the same as limit"`
	SortBy    *string           `query:"sort_by" doc:"created_at"`
	SortOrder *string           `query:"sort_order" doc:"desc (the default) or asc"`
}

// Bounds of numbered pages. The last row that can be reached by number is far
// beyond what one server holds; a cursor reaches all.
const (
	defaultPage = 20
	maxPageNo   = 1_000_000
)

func (a *API) listSandboxes(ctx context.Context, c *call, in *listSandboxes) (v1.SandboxPage, error) {
	var sp httpapi.Spellings
	q := engine.SandboxesRequest{Image: text0(in.Image), Search: text0(in.Search), Metadata: in.Metadata}
	q.States = states(&sp, in.Status, in.State)
	page := pageOf(&sp, &q, defaultPage, in.Limit, in.PageSize, in.Cursor, in.Page, in.SortOrder)
	if in.SortBy != nil && *in.SortBy != "created_at" {
		sp.Add("sort_by", "%q is not valid; use created_at", sandbox.Clip(*in.SortBy, 80))
	}
	if err := sp.Err(); err != nil {
		return v1.SandboxPage{}, err
	}
	got, err := a.Sandboxes.List(ctx, c.Caller, q)
	if err != nil {
		return v1.SandboxPage{}, sp.Rename(err)
	}
	return sandboxPage(got, page, q.Limit), nil
}

// pageOf reads which page of a list is asked for into q, and returns its number; nil: it is one by cursor.
func pageOf(sp *httpapi.Spellings, q *engine.SandboxesRequest, normal int, limit, size *int, cursor *string, number *int, order *string) (page *int) {
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
	q.Oldest = ascending(sp, order)
	return page
}

func sandboxPage(got engine.Page, page *int, size int) v1.SandboxPage {
	out := v1.SandboxPage{
		Items: make([]v1.Sandbox, 0, len(got.Items)), Total: got.Total, Page: page, PageSize: size,
		StatusCounts: counts(got.Counts), NextCursor: textOrNull(got.Next),
	}
	for _, s := range got.Items {
		out.Items = append(out.Items, sandboxOf(s))
	}
	return out
}

// states reads both spellings of the filter. Deleted sandboxes have no record.
func states(sp *httpapi.Spellings, status, state []string) (out []sandbox.State) {
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
		sp.Add(name, "%q is not a valid state; the states are %s", sandbox.Clip(s, 80), strings.Join(liveStates(), ", "))
	}
	return out
}

func liveStates() (out []string) {
	for _, s := range sandbox.States() {
		if s != sandbox.Deleted {
			out = append(out, string(s))
		}
	}
	return out
}

func counts(m map[sandbox.State]int) map[string]int {
	out := make(map[string]int)
	for _, s := range liveStates() {
		out[s] = m[sandbox.State(s)]
	}
	return out
}
