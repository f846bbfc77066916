// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
)

func TestTheOverviewIsOfWhatHappened(t *testing.T) {
	t.Parallel()
	h := open(t)
	red, blue := h.as("red", access.SandboxesRead, access.SandboxesWrite), h.as("blue", access.Admin)
	box := want[v1.Sandbox](red, http.StatusCreated, "POST", "/v1/sandboxes", `{}`)
	want[v1.ExecResult](red, http.StatusOK, "POST", "/v1/sandboxes/"+box.ID+"/exec", `{"command": "true"}`)
	want[v1.ExecResult](red, http.StatusOK, "POST", "/v1/sandboxes/"+box.ID+"/exec", `{"command": "exit 3"}`)
	if a := red.do("POST", "/v1/sandboxes", `{"image": "there-is-none"}`); a.StatusCode < 400 {
		t.Fatalf("got %s", a.Status)
	}
	if a := red.do("POST", "/v1/sandboxes/none/exec", `{"command": "true"}`); a.StatusCode != http.StatusNotFound {
		t.Fatalf("got %s", a.Status)
	}

	o := want[v1.Overview](red, http.StatusOK, "GET", "/v1/overview", nil)
	if o.Project == nil || *o.Project != "red" || o.Sandboxes["running"] != 1 || o.Host != nil || len(o.Stores) != 0 || o.OpenFiles != nil || o.RecordsFull != nil || !o.Hour.Counted || o.Hour.Since.Before(o.StartedAt.AddDate(0, 0, -1)) {
		t.Errorf("red: got %+v", o)
	}
	hr := o.Hour
	if hr.Creates != 1 || hr.Commands != 2 || hr.CreateMS.Count != 1 || hr.ExecMS.Count != 2 || hr.ExecMS.P95 == nil || *hr.ExecMS.P95 < *hr.ExecMS.P50 || len(hr.Minutes) == 0 {
		t.Errorf("red: got %+v", hr)
	}
	for _, f := range []v1.Failures{{Of: "command", Cause: "exit", Count: 1}, {Of: "command", Cause: "not_found", Count: 1}} {
		if !slices.Contains(hr.Failures, f) {
			t.Errorf("there is no %+v in %+v", f, hr.Failures)
		}
	}
	if !slices.ContainsFunc(hr.Failures, func(f v1.Failures) bool { return f.Of == "create" && f.Count == 1 }) {
		t.Errorf("no create failed in %+v", hr.Failures)
	}

	// Another project sees nothing of it, and no project sees all of them, or the host.
	other := want[v1.Overview](blue, http.StatusOK, "GET", "/v1/overview", nil)
	if *other.Project != "blue" || len(other.Sandboxes) != 0 || other.Hour.Creates != 0 || other.Hour.Commands != 0 || len(other.Hour.Failures) != 0 || len(other.Hour.Minutes) != 0 || other.Host != nil {
		t.Errorf("blue: got %+v", other)
	}
	for _, c := range []struct {
		h    *house
		path string
	}{{red, "/v1/overview?all_projects=true"}, {blue, "/v1/overview?all_projects=true"}} {
		if a := c.h.do("GET", c.path, nil); a.StatusCode != http.StatusForbidden || !strings.Contains(string(a.body), "concerns the whole server") {
			t.Errorf("%s: %s %s", c.path, a.Status, a.body)
		}
	}
	if a := h.as("red", access.Scope("tools:core")).do("GET", "/v1/overview", nil); a.StatusCode != http.StatusForbidden {
		t.Errorf("without a scope: %s %s", a.Status, a.body)
	}

	all := want[v1.Overview](h, http.StatusOK, "GET", "/v1/overview?all_projects=true", nil)
	if all.Project != nil || all.Sandboxes["running"] != 1 || all.Hour.Creates != 1 || all.Hour.Commands != 2 || all.Host == nil || all.Host.MemoryLimit <= 0 {
		t.Errorf("all: got %+v", all)
	}
	if a := h.do("GET", "/v1/overview?all_projects=perhaps", nil); a.StatusCode != http.StatusUnprocessableEntity && a.StatusCode != http.StatusBadRequest {
		t.Errorf("a wrong parameter: %s %s", a.Status, a.body)
	}
}
