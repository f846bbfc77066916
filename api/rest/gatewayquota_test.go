// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
)

func TestQuotasAndUsageAsTheGatewayHasThem(t *testing.T) {
	t.Parallel()
	h := open(t)
	red := h.as("red", access.SandboxesRead, access.SandboxesWrite)
	if got := want[v1.UserQuotas](h, http.StatusOK, "GET", "/api/v1/admin/sandboxes/quotas", nil); len(got.Quotas) != 0 || got.PlatformDefaults.IsCustom {
		t.Errorf("at first %+v", got)
	}
	q := want[v1.UserQuota](h, http.StatusOK, "PUT", "/api/v1/admin/sandboxes/quotas/red", `{"max_sandboxes": 1, "max_exec_per_day": 100}`)
	if q.UserID != "red" || q.MaxSandboxes != 1 || q.MaxExecPerDay != 100 || q.MaxMemoryMB != 0 || !q.IsCustom {
		t.Errorf("set %+v", q)
	}
	box := want[v1.Sandbox](red, http.StatusCreated, "POST", "/v1/sandboxes", `{}`)
	if a := red.do("POST", "/v1/sandboxes", `{}`); a.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a second one: %s", a.Status)
	}
	want[v1.ExecOutcome](red, http.StatusOK, "POST", "/v1/sandboxes/"+box.ID+"/exec", `{"command": "true"}`)
	if got := want[v1.UserQuotas](h, http.StatusOK, "GET", "/api/v1/admin/sandboxes/quotas", nil); len(got.Quotas) != 1 || got.Quotas[0].ActiveSandboxes != 1 {
		t.Errorf("listed %+v", got)
	}
	if q := want[v1.UserQuota](h, http.StatusOK, "PUT", "/api/v1/admin/sandboxes/quotas/red", `{"max_sandboxes": 0}`); q.MaxSandboxes != 0 || q.MaxExecPerDay != 100 {
		t.Errorf("taken away: %+v", q)
	}
	if q := want[v1.UserQuota](h, http.StatusOK, "GET", "/api/v1/admin/sandboxes/quotas/red", nil); q.ActiveSandboxes != 1 {
		t.Errorf("got %+v", q)
	}
	want[v1.UsageSummary](h, http.StatusOK, "GET", "/api/v1/admin/sandboxes/usage/summary?since=2020-01-01T00:00:00Z", nil)
	if a := h.do("GET", "/api/v1/admin/sandboxes/quotas/none", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("a project that there is not: %s", a.Status)
	}
	if a := h.do("PUT", "/api/v1/admin/sandboxes/quotas/red", `{"max_memory_mb": -1}`); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), "max_memory_mb") {
		t.Errorf("a quota below nothing: %s %s", a.Status, a.body)
	}
	for _, path := range []string{"/quotas", "/quotas/red", "/usage/summary"} {
		if a := h.as("red", access.Admin).do("GET", "/v1/admin/sandboxes"+path, nil); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s as a project's: %s", path, a.Status)
		}
	}
}
