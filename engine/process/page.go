// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/engine/check"
	"sandpit.dev/sandbox"
)

// Bounds of a page of processes.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Query says which processes of a sandbox are wanted.
type Query struct {
	Running bool // only those that have not ended
	Tty     bool // only those at a terminal
	Name    string
	Labels  map[string]string // only those with all of them
	Newest  bool              // first; else the oldest
	Limit   int               // zero: DefaultPage; at most MaxPage
	Cursor  string
}

// Page is one page of processes.
type Page struct {
	Items []sandbox.Process
	Next  string // the cursor of the next page; empty at the end
}

// Check returns fault.Invalid with every wrong field.
func (q Query) Check() error {
	var k check.Fields
	if q.Limit < 0 || q.Limit > MaxPage {
		k.Bad("limit", "%d is outside 1 to %d", q.Limit, MaxPage)
	}
	if q.Name != "" {
		k.Name("name", q.Name)
	}
	k.Labels("label", q.Labels)
	if _, ok := parsePlace(q.Cursor); !ok {
		k.Bad("cursor", "%q is not a valid cursor", sandbox.Clip(q.Cursor, 40))
	}
	return k.Err()
}

// Of returns the page that a query, which was checked, asks for of all processes of a sandbox. It
// changes all.
func (q Query) Of(all []sandbox.Process) Page {
	if q.Running {
		all = slices.DeleteFunc(all, func(r sandbox.Process) bool { return r.Result != nil })
	}
	if q.Tty {
		all = slices.DeleteFunc(all, func(r sandbox.Process) bool { return !r.Terminal })
	}
	if q.Name != "" {
		all = slices.DeleteFunc(all, func(r sandbox.Process) bool { return r.Name != q.Name })
	}
	if len(q.Labels) > 0 {
		all = slices.DeleteFunc(all, func(r sandbox.Process) bool { return !Has(&r, q.Labels) })
	}
	order := 1
	if q.Newest {
		order = -1
	}
	slices.SortFunc(all, func(a, b sandbox.Process) int { return order * placeOf(a).compare(placeOf(b)) })
	if q.Cursor != "" {
		after, _ := parsePlace(q.Cursor)
		all = slices.DeleteFunc(all, func(r sandbox.Process) bool { return order*placeOf(r).compare(after) <= 0 })
	}
	limit := q.Limit
	if limit == 0 {
		limit = DefaultPage
	}
	page := Page{Items: all}
	if len(all) > limit {
		page.Items = all[:limit]
		page.Next = placeOf(all[limit-1]).String()
	}
	return page
}

// place is where a process stands in the order of starts.
type place struct {
	at int64 // Unix time in ns
	id string
}

func placeOf(r sandbox.Process) place { return place{r.StartedAt.UnixNano(), r.ID} }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.at, q.at), strings.Compare(p.id, q.id))
}

func (p place) String() string { return strconv.FormatInt(p.at, 36) + "." + p.id }

func parsePlace(s string) (place, bool) {
	if s == "" {
		return place{}, true
	}
	at, id, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(at, 36, 64)
	return place{n, id}, err == nil && sandbox.ValidID(id)
}
