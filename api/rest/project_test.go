// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/store"
)

func TestProjects(t *testing.T) {
	t.Parallel()
	h := open(t)
	web := h.as("web", access.Admin) // which makes the project
	t.Run("ATokenMakesItsProject", func(t *testing.T) {
		all := want[v1.ProjectList](h, http.StatusOK, "GET", "/v1/projects", nil).Items
		if len(all) != 2 || all[0].Name != "default" || all[1].Name != "web" || all[1].Quotas != (v1.Amounts{}) {
			t.Errorf("got %+v", all)
		}
		if all := want[v1.ProjectList](web, http.StatusOK, "GET", "/v1/projects", nil).Items; len(all) != 1 || all[0].Name != "web" {
			t.Errorf("its token sees %+v", all)
		}
	})
	t.Run("QuotasAreSetAndRefuse", func(t *testing.T) {
		p := want[v1.Project](h, http.StatusOK, "PATCH", "/v1/projects/web", `{"quotas": {"sandboxes": 1, "commands_per_day": 2, "memory_mb": 4096}}`)
		if p.Quotas.Sandboxes == nil || *p.Quotas.Sandboxes != 1 || p.Quotas.Volumes != nil {
			t.Errorf("got %+v", p.Quotas)
		}
		box := want[v1.Sandbox](web, http.StatusCreated, "POST", "/v1/sandboxes", `{}`)
		a := web.do("POST", "/v1/sandboxes", `{}`)
		if a.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(a.body), "the quota sandboxes: 1, of which 1 are in use") {
			t.Errorf("a second sandbox: %s %s", a.Status, a.body)
		}
		a = web.do("POST", "/v1/sandboxes/"+box.ID+"/fork", `{}`)
		if a.StatusCode != http.StatusTooManyRequests {
			t.Errorf("a fork: %s %s", a.Status, a.body)
		}
		for range 2 {
			want[v1.ExecResult](web, http.StatusOK, "POST", "/v1/sandboxes/"+box.ID+"/exec", `{"command": "true"}`)
		}
		a = web.do("POST", "/v1/sandboxes/"+box.ID+"/exec", `{"command": "true"}`)
		if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.body), "commands_per_day") {
			t.Errorf("a third command: %s %v %s", a.Status, a.Header, a.body)
		}
		l := want[v1.SandboxLimits](web, http.StatusOK, "GET", "/v1/limits", nil).Project
		if l == nil || l.Name != "web" || *l.Used.Sandboxes != 1 || *l.Left.Sandboxes != 0 || *l.Left.CommandsPerDay != 0 || *l.Left.MemoryMB != 4096-512 || l.Left.Volumes != nil {
			t.Errorf("the limits: %+v", l)
		}
		want[v1.Sandbox](h, http.StatusCreated, "POST", "/v1/sandboxes", `{}`) // another project's
	})
	t.Run("ABudgetThatIsUsedUpRefusesUntilTheMonthEnds", func(t *testing.T) {
		lab := h.as("lab", access.Admin)
		want[v1.Project](h, http.StatusOK, "PATCH", "/v1/projects/lab", `{"quotas": {"cpu_seconds_per_month": 100, "memory_gib_seconds_per_month": 1000}}`)
		box := want[v1.Sandbox](lab, http.StatusCreated, "POST", "/v1/sandboxes", `{}`)
		want[v1.Sandbox](lab, http.StatusOK, "POST", "/v1/sandboxes/"+box.ID+"/stop", nil)
		must(t, h.quotas.Store().Update(t.Context(), func(tx store.Tx) error {
			return tx.Usage().Add(store.Used{Project: "lab", Token: "ci", Time: time.Now(), CPUSeconds: 100.25, MemorySeconds: 10})
		}))
		for _, r := range [][2]string{{"POST", "/v1/sandboxes"}, {"POST", "/v1/sandboxes/" + box.ID + "/start"}} {
			a := lab.do(r[0], r[1], `{}`)
			if a.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(a.body), "cpu_seconds_per_month: 100, of which 100.25 are used") {
				t.Errorf("%s: %s %s", r[1], a.Status, a.body)
			}
			if n, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || n < 1 || n > 31*24*3600 {
				t.Errorf("%s: try again in %q", r[1], a.Header.Get("Retry-After"))
			}
		}
		p := want[v1.SandboxLimits](lab, http.StatusOK, "GET", "/v1/limits", nil).Project
		if *p.Used.CPUSecondsPerMonth != 100 || *p.Left.CPUSecondsPerMonth != 0 || *p.Left.MemoryGiBSecondsPerMonth != 990 || p.BudgetResetAt.Day() != 1 {
			t.Errorf("the limits: %+v", p)
		}
		want[v1.Project](h, http.StatusOK, "PATCH", "/v1/projects/lab", `{"quotas": {"cpu_seconds_per_month": 0}}`)
		want[v1.Sandbox](lab, http.StatusOK, "POST", "/v1/sandboxes/"+box.ID+"/start", nil)
	})
	t.Run("AreOfTheServersAdministrator", func(t *testing.T) {
		for _, r := range [][3]string{{"POST", "/v1/projects", `{"name": "mine"}`}, {"PATCH", "/v1/projects/web", `{"quotas": {"sandboxes": 0}}`}, {"DELETE", "/v1/projects/web", ""}, {"GET", "/v1/projects/default", ""}} {
			var body any
			if r[2] != "" {
				body = r[2]
			}
			if a := web.do(r[0], r[1], body); a.StatusCode != http.StatusForbidden {
				t.Errorf("%s %s: %s %s", r[0], r[1], a.Status, a.body)
			}
		}
	})
	t.Run("AreMadeAndDeletedWhenEmpty", func(t *testing.T) {
		p := want[v1.Project](h, http.StatusCreated, "POST", "/v1/projects", `{"name": "empty", "quotas": {"cpu_cores": 0.5}}`)
		if p.CreatedBy != "admin-token" || p.Quotas.CPUCores == nil || *p.Left.CPUCores != 0.5 {
			t.Errorf("got %+v", p)
		}
		if a := h.do("POST", "/v1/projects", `{"name": "empty"}`); a.StatusCode != http.StatusConflict {
			t.Errorf("again: %s", a.Status)
		}
		if a := h.do("POST", "/v1/projects", `{"name": "no", "quotas": {"volumes": -1}}`); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), "quotas.volumes") {
			t.Errorf("less than nothing: %s %s", a.Status, a.body)
		}
		if a := h.do("DELETE", "/v1/projects/web", nil); a.StatusCode != http.StatusConflict || !strings.Contains(string(a.body), "1 sandbox, 1 token") {
			t.Errorf("one that is not empty: %s %s", a.Status, a.body)
		}
		if a := h.do("DELETE", "/v1/projects/empty", nil); a.StatusCode != http.StatusNoContent {
			t.Errorf("an empty one: %s %s", a.Status, a.body)
		}
		if a := h.do("GET", "/v1/projects/empty", nil); a.StatusCode != http.StatusNotFound {
			t.Errorf("a deleted one: %s %s", a.Status, a.body)
		}
	})
}
