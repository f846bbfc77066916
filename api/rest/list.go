// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/query"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
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
	SortOrder *string           `query:"sort_order" doc:"desc (the default) or asc"`
	query.Spans
}

// defaultPage is how many sandboxes a page has that does not say it.
const defaultPage = 20

func (a *API) listSandboxes(ctx context.Context, c *idempotency.Call, in *listSandboxes) (v1.SandboxPage, error) {
	var sp httpapi.Spellings
	q := engine.SandboxesRequest{Image: httpapi.Given(in.Image), Search: httpapi.Given(in.Search), Metadata: in.Metadata}
	q.States = query.States(&sp, in.Status, in.State)
	page := query.Page(&sp, &q, defaultPage, in.Limit, in.PageSize, in.Cursor, in.Page, in.SortOrder)
	in.Spans.Read(&sp, &q)
	if err := sp.Err(); err != nil {
		return v1.SandboxPage{}, err
	}
	got, err := a.Sandboxes.List(ctx, c.Caller, q)
	if err != nil {
		return v1.SandboxPage{}, sp.Rename(err)
	}
	return shape.SandboxPage(got, page, q.Limit), nil
}
