// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/audit"
)

// auditOf returns the rows of a query, newest first.
func auditOf(h *house, query string) []v1.AuditRecord {
	h.t.Helper()
	return want[v1.AuditPage](h, http.StatusOK, "GET", "/v1/audit?limit=500"+query, nil).Items
}

func TestTheAuditLogTellsOfCommandsAndCalls(t *testing.T) {
	h := open(t)
	box := want[v1.Sandbox](h, http.StatusCreated, "POST", "/v1/sandboxes", v1.CreateSandbox{Key: new("chat-1"), Env: map[string]string{"TOKEN": "plain"}})
	run := want[v1.ExecResult](h, http.StatusOK, "POST", "/v1/sandboxes/chat-1/exec", v1.Exec{Command: new("echo hello; echo oops >&2; exit 3")})
	want[v1.Sandbox](h, http.StatusOK, "GET", "/v1/sandboxes/chat-1", nil)
	h.do("GET", "/v1/sandboxes/chat-1/processes/"+run.ProcessID+"/logs", nil)
	h.do("DELETE", "/v1/sandboxes/chat-1", nil)
	rows := auditOf(h, "&sandbox="+box.ID)
	var types []string
	for _, r := range rows {
		types = append(types, r.Type)
	}
	slices.Sort(types) // calls come behind their answers
	if !slices.Equal(types, []string{"call", "exec", "sandbox.created", "sandbox.deleted", "sandbox.started"}) {
		t.Fatalf("the log has %v", types)
	}
	for _, r := range rows {
		switch r.Type {
		case "exec":
			if r.Outcome != "failed" || *r.ExitCode != 3 || r.Stdout.First != "hello\n" || r.Stderr.First != "oops\n" || r.Stdout.SHA256 == nil || *r.Call != "exec" || *r.Actor == "" || *r.RequestID == "" || *r.Address == "" {
				t.Errorf("the command's row: %+v", r)
			}
		case "call":
			if *r.Call != "processLogs" || *r.Status != 200 || r.Outcome != "ok" {
				t.Errorf("the call's row: %+v", r)
			}
		}
	}
	// What reads and changes nothing of a sandbox leaves no row.
	for _, r := range auditOf(h, "&type=call") {
		if *r.Call == "getSandbox" || *r.Call == "createSandbox" || *r.Call == "exec" {
			t.Errorf("a row of %s", *r.Call)
		}
	}
	report := want[v1.AuditReport](h, http.StatusOK, "POST", "/v1/audit/verify", nil)
	if report.Rows == 0 || len(report.Chains) != 1 {
		t.Errorf("the report: %+v", report)
	}
}

func TestTheAuditLogOfAProjectIsItsAdmins(t *testing.T) {
	h := open(t)
	want[v1.Sandbox](h, http.StatusCreated, "POST", "/v1/sandboxes", v1.CreateSandbox{})
	own := h.as("other", access.Admin)
	want[v1.Sandbox](own, http.StatusCreated, "POST", "/v1/sandboxes", v1.CreateSandbox{})
	for _, r := range auditOf(own, "") {
		if r.Project == nil || *r.Project != "other" {
			t.Errorf("another project's admin reads %+v", r)
		}
	}
	if len(auditOf(own, "&type=sandbox.created")) != 1 {
		t.Error("the project's own row is missing")
	}
	reader := h.as("other", access.SandboxesWrite)
	for _, c := range []struct {
		as           *house
		method, path string
		body         any
	}{
		{own, "GET", "/v1/audit?project=default", nil}, {own, "GET", "/v1/audit?project=*", nil}, {own, "GET", "/v1/audit/export?project=*", nil},
		{own, "POST", "/v1/audit/verify", nil}, {own, "POST", "/v1/audit/prune", map[string]string{"before": "2026-01-01T00:00:00Z"}},
		{reader, "GET", "/v1/audit", nil}, {reader, "GET", "/v1/audit/export", nil}, {reader, "GET", "/v1/observability/logs", nil},
		{own, "GET", "/v1/observability/logs?user_id=default", nil},
	} {
		want[v1.Problem](c.as, http.StatusForbidden, c.method, c.path, c.body)
	}
	// And each refusal is on it.
	denied := auditOf(h, "&project=other&outcome=denied")
	if len(denied) != 9 {
		t.Errorf("%d refusals are on the log, want 9", len(denied))
	}
	for path, field := range map[string]string{
		"/v1/audit?outcome=no": "outcome", "/v1/audit?limit=0": "limit", "/v1/audit?since=x": "since", "/v1/audit/export?format=pdf": "format",
		"/v1/audit?text=" + strings.Repeat("x", 201): "text", "/v1/observability/logs?source_type=server": "source_type",
	} {
		if p := want[v1.Problem](h, http.StatusUnprocessableEntity, "GET", path, nil); len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

func TestAnExportOfTheAuditLog(t *testing.T) {
	h := open(t)
	box := want[v1.Sandbox](h, http.StatusCreated, "POST", "/v1/sandboxes", v1.CreateSandbox{})
	want[v1.ExecResult](h, http.StatusOK, "POST", "/v1/sandboxes/"+box.ID+"/exec", v1.Exec{Command: new("echo =1+1")})
	for _, c := range []struct {
		path     string
		complete bool
	}{
		{"/v1/audit/export?project=*", true}, {"/v1/audit/export", false}, {"/v1/sandboxes/" + box.ID + "/logs/export", false}, {"/api/v1/observability/logs/export?format=json&tool_name=exec", false},
	} {
		a := h.do("GET", c.path, nil)
		r, err := audit.VerifyExport(bytes.NewReader(a.body), nil, nil)
		if a.StatusCode != http.StatusOK || err != nil || r.Complete != c.complete || r.Rows == 0 {
			t.Errorf("%s: %d, %+v, %v", c.path, a.StatusCode, r, err)
		}
	}
	body := h.do("GET", "/v1/sandboxes/"+box.ID+"/logs/export?format=csv", nil).body
	lines, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
	if err != nil || len(lines) < 3 {
		t.Errorf("as CSV: %v, %q", err, body)
	}
}

func TestLogsAsTheGatewayHasThem(t *testing.T) {
	h := open(t)
	box := want[v1.Sandbox](h, http.StatusCreated, "POST", "/v1/sandboxes", v1.CreateSandbox{Key: new("chat-1")})
	want[v1.ExecResult](h, http.StatusOK, "POST", "/v1/sandboxes/chat-1/exec", v1.Exec{Command: new("echo one")})
	want[v1.ExecResult](h, http.StatusOK, "POST", "/v1/sandboxes/chat-1/exec", v1.Exec{Command: new("echo two; exit 1")})
	p := want[v1.ExecutionLogPage](h, http.StatusOK, "GET", "/api/v1/sandboxes/chat-1/logs?tool_name=exec", nil)
	if p.Total != 2 || len(p.Items) != 2 || p.Items[0].Status != "error" || p.Items[0].Stdout != "two\n" || *p.Items[0].ExitCode != 1 || p.Items[1].Status != "success" || *p.Items[1].Command != "echo one" || p.Items[1].SandboxID != box.ID {
		t.Errorf("the logs: %+v", p)
	}
	p = want[v1.ExecutionLogPage](h, http.StatusOK, "GET", "/api/v1/observability/logs?status=error&sandbox_id="+box.ID+"&search=TWO", nil)
	if p.Total != 1 || len(p.Items) != 1 {
		t.Errorf("those that failed: %+v", p)
	}
	p = want[v1.ExecutionLogPage](h, http.StatusOK, "GET", "/api/v1/observability/logs?limit=1&offset=1&tool_name=exec", nil)
	if p.Total != 2 || len(p.Items) != 1 || p.Items[0].Status != "success" {
		t.Errorf("the second page: %+v", p)
	}
	h.do("DELETE", "/v1/sandboxes/chat-1", nil)
	if p := want[v1.ExecutionLogPage](h, http.StatusOK, "GET", "/api/v1/sandboxes/"+box.ID+"/logs", nil); p.Total < 4 {
		t.Errorf("of a sandbox that is deleted: %+v", p)
	}
	want[v1.Problem](h, http.StatusNotFound, "GET", "/api/v1/sandboxes/chat-1/logs", nil)
}

// What is sent as anything but JSON is what is in sandboxes, or a log.
func TestOperationsThatReadContentAreOnTheAuditLog(t *testing.T) {
	h := open(t)
	doc, _ := h.document()
	told := rest.ContentOperations()
	for path, methods := range doc.Paths {
		get, ok := methods["get"]
		figures := get.OperationID == "getStats" || get.OperationID == "listStats" || get.OperationID == "followEvents" // of records alone
		if !ok || figures || get.OperationID == "getOpenAPI" || slices.Contains(told, get.OperationID) {
			continue
		}
		for status, r := range get.Responses {
			for media := range r.Content {
				if status == "200" && media != "application/json" {
					t.Errorf("%s of %s answers %s, and the audit log does not tell of it: add it to contentOperations", get.OperationID, path, media)
				}
			}
		}
	}
}
