// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"slices"
	"testing"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
)

func TestSandboxesOfAllProjects(t *testing.T) {
	t.Parallel()
	h := open(t)
	red, blue := h.as("red", access.SandboxesRead, access.SandboxesWrite), h.as("blue", access.Admin)
	make := func(h *house, body string) string {
		t.Helper()
		return want[v1.Sandbox](h, http.StatusCreated, "POST", "/v1/sandboxes", body).ID
	}
	r1, r2 := make(red, `{"metadata": {"team": "x"}}`), make(red, `{"image": "node"}`)
	b1 := make(blue, `{"key": "one", "metadata": {"team": "x"}}`)
	want[v1.Sandbox](red, http.StatusOK, "POST", "/v1/sandboxes/"+r2+"/stop", nil)

	ids := func(query string) []string {
		t.Helper()
		var out []string
		for _, s := range want[v1.SandboxPage](h, http.StatusOK, "GET", "/api/v1/admin/sandboxes"+query, nil).Items {
			out = append(out, s.ID)
		}
		slices.Sort(out)
		return out
	}
	for query, wanted := range map[string][]string{
		"":                                {r1, r2, b1},
		"?project=red":                    {r1, r2},
		"?user_id=blue":                   {b1},
		"?status=running":                 {r1, b1},
		"?exclude_status=running":         {r2},
		"?metadata.team=x":                {r1, b1},
		"?metadata%5Bteam%5D=x&page=1":    {r1, b1},
		"?image=OD":                       {r2},
		"?search=one":                     {b1},
		"?project=red&metadata.team=x":    {r1},
		"?status=running&project=nowhere": nil,
	} {
		slices.Sort(wanted)
		if got := ids(query); !slices.Equal(got, wanted) {
			t.Errorf("%q: got %v, want %v", query, got, wanted)
		}
	}
	for _, query := range []string{"?status=up", "?exclude_status=up", "?status=running&exclude_status=running", "?project=No!", "?project=red&user_id=blue", "?page=0", "?cursor=x&page=2"} {
		if a := h.do("GET", "/v1/admin/sandboxes"+query, nil); a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %s %s", query, a.Status, a.body)
		}
	}
	for _, stranger := range []*house{red, blue} {
		for _, o := range [][2]string{{"GET", ""}, {"POST", "/bulk-stop"}, {"POST", "/bulk-destroy"}} {
			if a := stranger.do(o[0], "/v1/admin/sandboxes"+o[1], nil); a.StatusCode != http.StatusForbidden {
				t.Errorf("%v as a project's: %s", o, a.Status)
			}
		}
	}

	bulk := func(path, body string) v1.BulkResult {
		t.Helper()
		return want[v1.BulkResult](h, http.StatusOK, "POST", "/v1/admin/sandboxes/"+path, body)
	}
	for _, body := range []string{`{}`, `{"dry_run": true}`, `{"sandbox_ids": ["` + r1 + `"], "project": "red"}`, `{"sandbox_ids": ["../x"]}`, `{"sandbox_ids": ["` + r1 + `"], "all": true}`} {
		if a := h.do("POST", "/v1/admin/sandboxes/bulk-destroy", body); a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %s %s", body, a.Status, a.body)
		}
	}
	if got := bulk("bulk-stop", `{"metadata": {"team": "x"}, "dry_run": true}`); len(got.Stopped) != 2 || !got.DryRun {
		t.Errorf("dry: %+v", got)
	}
	if got := ids("?status=running"); len(got) != 2 {
		t.Errorf("a dry run stopped some: %v run", got)
	}
	const nobody = "aaaaaaaaaaaaaaaa"
	got := bulk("bulk-stop", `{"sandbox_ids": ["`+r1+`", "`+r2+`", "`+b1+`", "`+nobody+`"]}`)
	wanted := []string{r1, b1}
	slices.Sort(wanted)
	if !slices.Equal(got.Stopped, wanted) || !slices.Equal(got.Skipped, []string{r2}) || len(got.Errors) != 1 || got.Errors[0].SandboxID != nobody || got.Errors[0].Code != "not_found" {
		t.Errorf("bulk-stop: %+v", got)
	}
	if got := ids("?status=stopped"); len(got) != 3 {
		t.Errorf("stopped are %v", got)
	}
	if got := bulk("bulk-destroy", `{"user_id": "red"}`); len(got.Destroyed) != 2 {
		t.Errorf("bulk-destroy: %+v", got)
	}
	if got := ids(""); !slices.Equal(got, []string{b1}) {
		t.Errorf("left are %v", got)
	}
	if got := bulk("bulk-destroy", `{"all": true}`); !slices.Equal(got.Destroyed, []string{b1}) {
		t.Errorf("all: %+v", got)
	}
}
