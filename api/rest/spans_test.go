// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
)

func TestSandboxesAreListedByWhatTheyHave(t *testing.T) {
	t.Parallel()
	h := open(t)
	var ids []string
	for n := range 5 {
		body := object{"cpu_cores": 0.5 + float64(n%2), "memory_mb": 128 * (5 - n), "disk_mb": 256 + n}
		if n%2 == 0 {
			body["ttl_seconds"] = 1000 - n
		}
		ids = append(ids, want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", body).ID)
	}
	one := want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/"+ids[1], nil) // it is the last that was used
	at := func(t time.Time) string { return url.QueryEscape(t.UTC().Format(time.RFC3339Nano)) }
	for query, order := range map[string][]int{
		"sort_by=memory_mb":                                                {0, 1, 2, 3, 4},
		"sort_by=memory_mb&sort_order=asc":                                 {4, 3, 2, 1, 0},
		"sort_by=disk_mb&sort_order=asc":                                   {0, 1, 2, 3, 4},
		"sort_by=expires_at&sort_order=asc&expires_from=" + at(time.Now()): {4, 2, 0},
		"memory_mb_from=384&sort_by=disk_mb":                               {2, 1, 0},
		"cpu_cores_to=1&sort_by=disk_mb&disk_mb_from=257":                  {4, 2},
		"created_to=" + at(one.CreatedAt):                                  {1, 0},
		"created_from=" + at(one.CreatedAt) + "&sort_order=asc":            {1, 2, 3, 4},
		"sort_by=last_activity_at&limit=1":                                 {1},
		"activity_to=" + at(time.Now().Add(-time.Hour)):                    nil,
	} {
		page := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes?"+query, nil)
		var got, wanted []string
		for _, s := range page.Items {
			got = append(got, s.ID)
		}
		for _, n := range order {
			wanted = append(wanted, ids[n])
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("%s: got %v, want %v", query, got, wanted)
		}
	}
	// Pages by a cursor have each once, though more are made meanwhile.
	seen := make(map[string]int)
	cursor := ""
	for {
		query := "/v1/sandboxes?sort_by=memory_mb&limit=2"
		if cursor != "" {
			query += "&cursor=" + cursor
		}
		page := want[v1.SandboxPage](h, 200, "GET", query, nil)
		for _, s := range page.Items {
			seen[s.ID]++
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
		want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"memory_mb": 1024})
	}
	for _, id := range ids {
		if seen[id] != 1 {
			t.Errorf("%s was listed %d times", id, seen[id])
		}
	}
	for field, value := range map[string]string{
		"sort_by": "name", "created_from": "yesterday", "cpu_cores_from": "many", "memory_mb_from": "-1", "disk_mb_to": "NaN",
	} {
		p := want[v1.Problem](h, 422, "GET", fmt.Sprintf("/v1/sandboxes?%s=%s", field, value), nil)
		if len(p.Errors) != 1 {
			t.Errorf("%s=%s: got %+v", field, value, p)
		}
	}
	for _, query := range []string{"created_from=2026-01-02T00:00:00Z&created_to=2026-01-01T00:00:00Z", "memory_mb_from=2&memory_mb_to=1"} {
		want[v1.Problem](h, 422, "GET", "/v1/sandboxes?"+query, nil)
	}
	want[v1.Problem](h, 422, "GET", "/v1/sandboxes?sort_by=disk_mb&cursor=nonsense", nil)
}
