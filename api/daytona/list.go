// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// filters are the parameters that both lists have.
type filters struct {
	ID              *string  `query:"id"`
	Name            *string  `query:"name"`
	Labels          *string  `query:"labels"` // an object in JSON
	States          []string `query:"states"`
	Snapshots       []string `query:"snapshots"`
	Regions         []string `query:"regionIds"`
	Classes         []string `query:"sandboxClasses"`
	MinCPU          *float64 `query:"minCpu"`
	MaxCPU          *float64 `query:"maxCpu"`
	MinMemory       *float64 `query:"minMemoryGiB"`
	MaxMemory       *float64 `query:"maxMemoryGiB"`
	MinDisk         *float64 `query:"minDiskGiB"`
	MaxDisk         *float64 `query:"maxDiskGiB"`
	CreatedAfter    *string  `query:"createdAtAfter"`
	CreatedBefore   *string  `query:"createdAtBefore"`
	EventAfter      *string  `query:"lastEventAfter"`
	EventBefore     *string  `query:"lastEventBefore"`
	DestroyedAfter  *string  `query:"autoDestroyAtAfter"`
	DestroyedBefore *string  `query:"autoDestroyAtBefore"`
	Sort            *string  `query:"sort"`
	Order           *string  `query:"order"`
	Limit           *int     `query:"limit"`
}

type listSandboxes struct {
	filters
	Cursor *string `query:"cursor"`
}

func (a *API) listSandboxes(ctx context.Context, c *httpapi.Call, in *listSandboxes) (wire.SandboxPage, error) {
	none := wire.SandboxPage{Items: []wire.ListItem{}}
	q, some, err := in.query(a.target)
	if err != nil || !some {
		return none, err
	}
	q.Cursor = given(in.Cursor)
	page, err := a.Sandboxes.List(ctx, c.Caller, q)
	if err != nil {
		return none, err
	}
	out := none
	for _, s := range page.Items {
		if one := a.item(c.R, s); in.selects(one.State) {
			out.Items = append(out.Items, one)
		}
	}
	if page.Next != "" {
		out.NextCursor = &page.Next
	}
	return out, nil
}

type numberedSandboxes struct {
	filters
	Page *int `query:"page"`
}

// maxPages bounds the number of a page.
const maxPages = 1 << 20

// numberedSandboxes is the list that clients before 0.180 use.
func (a *API) numberedSandboxes(ctx context.Context, c *httpapi.Call, in *numberedSandboxes) (wire.NumberedPage, error) {
	out := wire.NumberedPage{Items: []wire.Sandbox{}, Page: 1}
	if in.Page != nil {
		if out.Page = *in.Page; out.Page < 1 || out.Page > maxPages {
			return out, fault.InvalidField("page", "%d is outside 1 to %d", out.Page, maxPages)
		}
	}
	q, some, err := in.query(a.target)
	if err != nil || !some {
		return out, err
	}
	if q.Limit == 0 {
		q.Limit = engine.DefaultPage
	}
	q.Offset = (out.Page - 1) * q.Limit
	page, err := a.Sandboxes.List(ctx, c.Caller, q)
	if err != nil {
		return out, err
	}
	for _, s := range page.Items {
		if one := a.item(c.R, s); in.selects(one.State) {
			out.Items = append(out.Items, wire.Sandbox{ListItem: one, Env: map[string]string{}})
		}
	}
	out.Total, out.TotalPages = page.Total, (page.Total+q.Limit-1)/q.Limit
	return out, nil
}

// selects reports whether a state is one that is asked for. The engine's states, by which query selects, are fewer.
func (f *filters) selects(state string) bool {
	return len(f.States) == 0 || slices.Contains(f.States, state)
}

// query returns the engine's request; some is false where nothing can match.
func (f *filters) query(target string) (q engine.SandboxesRequest, some bool, err error) {
	var bad []fault.Field
	add := func(name, message string) { bad = append(bad, fault.Field{Name: name, Message: message}) }
	q.Limit = given(f.Limit)
	if f.Limit != nil && (q.Limit < 1 || q.Limit > engine.MaxPage) {
		add("limit", "is outside 1 to "+strconv.Itoa(engine.MaxPage))
	}
	some = len(f.Regions) == 0 || slices.Contains(f.Regions, target)
	some = some && (len(f.Classes) == 0 || slices.Contains(f.Classes, wire.ClassContainer))
	if f.Labels != nil && *f.Labels != "" {
		if json.Unmarshal([]byte(*f.Labels), &q.Metadata) != nil {
			add("labels", sandbox.Clip(*f.Labels, 80)+" is not a JSON object of strings")
		}
	}
	for _, name := range f.States {
		q.States = append(q.States, statesOf(name)...)
	}
	some = some && (len(f.States) == 0 || len(q.States) > 0)
	q.NamePart, q.Search = given(f.Name), given(f.ID)
	switch len(f.Snapshots) {
	case 0:
	case 1:
		q.Image = f.Snapshots[0]
	default:
		add("snapshots", "names several; ask for one at a time")
	}
	q.CPU = engine.AmountSpan{From: given(f.MinCPU), To: given(f.MaxCPU)}
	q.MemoryMB = engine.AmountSpan{From: 1024 * given(f.MinMemory), To: 1024 * given(f.MaxMemory)}
	q.DiskMB = engine.AmountSpan{From: 1024 * given(f.MinDisk), To: 1024 * given(f.MaxDisk)}
	for _, t := range []struct {
		name string
		text *string
		into *time.Time
	}{
		{"createdAtAfter", f.CreatedAfter, &q.Created.From}, {"createdAtBefore", f.CreatedBefore, &q.Created.To},
		{"lastEventAfter", f.EventAfter, &q.Active.From}, {"lastEventBefore", f.EventBefore, &q.Active.To},
		{"autoDestroyAtAfter", f.DestroyedAfter, &q.Expires.From}, {"autoDestroyAtBefore", f.DestroyedBefore, &q.Expires.To},
	} {
		if t.text == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, *t.text)
		if err != nil {
			add(t.name, sandbox.Clip(*t.text, 40)+" is not a time such as 2026-01-31T12:00:00Z")
		}
		*t.into = at
	}
	switch strings.ToLower(given(f.Sort)) {
	case "", "createdat":
	case "lastactivityat", "updatedat":
		q.Sort = "last_activity_at"
	case "cpu":
		q.Sort = "cpu_cores"
	case "memorygib", "memory":
		q.Sort = "memory_mb"
	case "diskgib", "disk":
		q.Sort = "disk_mb"
	default:
		add("sort", sandbox.Clip(*f.Sort, 40)+" is not one of createdAt, lastActivityAt, cpu, memoryGib and diskGib")
	}
	switch strings.ToLower(given(f.Order)) {
	case "", "desc":
	case "asc":
		q.Oldest = true
	default:
		add("order", sandbox.Clip(*f.Order, 40)+" is neither asc nor desc")
	}
	if len(bad) > 0 {
		return q, false, fault.InvalidFields(bad...)
	}
	return q, some, nil
}
