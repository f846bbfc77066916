// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
)

func TestProcessesHaveNamesAndLabels(t *testing.T) {
	t.Parallel()
	h := open(t)
	box := "/v1/sandboxes/" + h.create().ID
	p, _ := h.process(box, object{"command": "cat; exit 3", "stream_stdin": true, "name": "dev server", "labels": object{"kind": "server", "a.b": "c"}})
	if p.Name != "dev server" || p.Labels["kind"] != "server" {
		t.Errorf("got %+v", p)
	}
	named := box + "/processes/" + url.PathEscape("name:dev server")
	refused := want[v1.Problem](h, 409, "POST", box+"/processes", object{"command": "true", "name": "dev server"})
	if refused.Code != "exists" || !strings.Contains(refused.Detail, p.ProcessID) {
		t.Errorf("a second one: %+v", refused)
	}
	for query, n := range map[string]int{
		"": 1, "?label.kind=server": 1, "?label.a.b=c&label.kind=server": 1, "?label.kind=other": 0, "?label.kind=": 0, "?name=dev%20server": 1, "?name=dev": 0,
	} {
		if l := want[v1.ProcessList](h, 200, "GET", box+"/processes"+query, nil); len(l.Items) != n || n == 1 && l.Items[0].Labels["a.b"] != "c" {
			t.Errorf("%q: %+v, want %d", query, l.Items, n)
		}
	}
	if got := want[v1.Process](h, 200, "GET", fmt.Sprintf("%s/processes/pid:%d", box, p.PID), nil); got.ProcessID != p.ProcessID {
		t.Errorf("by its number: %+v", got)
	}
	want[v1.ProcessInput](h, 200, "POST", named+"/stdin?close=true", []byte("hello"))
	if got := want[v1.Process](h, 200, "GET", named+"/wait", nil); *got.ExitCode != 3 || got.Name != "dev server" {
		t.Errorf("waited for: %+v", got)
	}
	if a := h.do("GET", named+"/logs", nil); string(a.body) != "hello" || a.Header.Get("Sandpit-Process-Id") != p.ProcessID {
		t.Errorf("logs: %q, %v", a.body, a.Header)
	}
	if a := h.do("GET", named+"/output", nil); a.Header.Get("Sandpit-Process-Id") != p.ProcessID {
		t.Errorf("output: %v", a.Header)
	}
	if evs := want[v1.EventPage](h, 200, "GET", box+"/activity?process_id=name:dev%20server", nil); len(evs.Items) != 1 || evs.Items[0].Name != "dev server" || evs.Items[0].Labels["kind"] != "server" {
		t.Errorf("activity: %+v", evs.Items)
	}
	want[v1.Process](h, 201, "POST", box+"/processes", object{"command": "exec sleep 600", "name": "dev server"})
	want[v1.Problem](h, 404, "POST", box+"/processes/name:nosuch/signal", object{"signal": "INT"})
	want[v1.Problem](h, 404, "POST", box+"/processes/name:nosuch/resize", object{"cols": 1, "rows": 1})
	if a := h.do("POST", named+"/kill", nil); a.StatusCode != 204 {
		t.Errorf("kill: %d %s", a.StatusCode, a.body)
	}

	labels := object{}
	for i := range 17 {
		labels[fmt.Sprint(i)] = ""
	}
	bad := want[v1.Problem](h, 422, "POST", box+"/processes", object{"command": "true", "name": "a/b", "labels": labels})
	if len(bad.Errors) != 2 {
		t.Errorf("got %+v", bad)
	}
	for _, f := range bad.Errors {
		if f.Field == "labels" && f.Message != "has 17 labels, more than 16" {
			t.Errorf("got %+v", f)
		}
	}
	want[v1.Problem](h, 422, "POST", box+"/exec", object{"command": "true", "name": ""})
	want[v1.Problem](h, 422, "GET", box+"/processes?label.=x", nil)

	r := want[v1.ExecResult](h, 200, "POST", box+"/exec", object{"command": "echo a; echo b >&2; echo c", "merge_output": true, "name": "merged", "labels": object{"kind": "once"}})
	if r.Stdout != "a\nb\nc\n" || r.Stderr != "" {
		t.Errorf("merged: %q and %q", r.Stdout, r.Stderr)
	}
	if got := want[v1.Process](h, 200, "GET", box+"/processes/name:merged", nil); got.ProcessID != r.ProcessID || got.Labels["kind"] != "once" {
		t.Errorf("of exec: %+v", got)
	}
}

// A request that is sent again with its key begins no second process, and is not refused for the name of the first.
func TestAKeyedStartKeepsItsName(t *testing.T) {
	t.Parallel()
	h := open(t)
	box := "/v1/sandboxes/" + h.create().ID
	body := object{"command": "exec sleep 600", "name": "one"}
	first := h.do("POST", box+"/processes", body, "Idempotency-Key", "k")
	again := h.do("POST", box+"/processes", body, "Idempotency-Key", "k")
	if first.StatusCode != 201 || again.StatusCode != 201 || again.Header.Get("Sandpit-Process-Id") != first.Header.Get("Sandpit-Process-Id") {
		t.Errorf("%d %s\n%d %s", first.StatusCode, first.body, again.StatusCode, again.body)
	}
	if !strings.Contains(string(again.body), `"name":"one"`) {
		t.Errorf("the second answer has no name: %s", again.body)
	}
}
