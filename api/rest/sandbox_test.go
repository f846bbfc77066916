// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	t.Run("TheOlderServicesFieldsMeanTheSameOnBothBases", func(t *testing.T) {
		h := open(t)
		for _, base := range []string{"/v1", "/api/v1"} {
			a := want[object](h, 201, "POST", base+"/sandboxes", object{
				"image": "mcpgateway/sandbox-python:3.12", "memory_mb": 1024, "cpu_cores": 1, "disk_mb": 1024,
				"idle_timeout_seconds": 1800, "session_key": "agent-session-abc" + base[1:2], "env_vars": object{"A": "1"}, "network_enabled": false,
			})
			b := want[object](h, 201, "POST", base+"/sandboxes", object{
				"template": "python-3.12", "size": "small", "network": "off", "timeout_seconds": 600, "env": object{"A": "1"}, "metadata": object{"team": "x"},
			})
			for _, field := range []string{"memory_mb", "cpu_cores", "disk_mb", "image", "status", "workspace_path", "network_enabled", "idle_timeout_seconds", "env_names"} {
				if diff := cmp.Diff(a[field], b[field]); diff != "" {
					t.Errorf("%s differs by spelling: %s", field, diff)
				}
			}
			for field, want := range map[string]any{"status": "running", "workspace_path": "/workspace", "memory_mb": 1024.0, "exec_count": 0.0, "exec_total_ms": 0.0,
				"bytes_uploaded": 0.0, "bytes_downloaded": 0.0, "stopped_at": nil, "session_key": "agent-session-abc" + base[1:2], "network_enabled": false} {
				got, ok := a[field]
				if diff := cmp.Diff(got, want); diff != "" || !ok {
					t.Errorf("%s: got %v (%v), want %v", field, got, ok, want)
				}
			}
			if b["expires_at"] == nil || a["expires_at"] != nil {
				t.Errorf("expires_at: got %v and %v, want a time for timeout_seconds alone", b["expires_at"], a["expires_at"])
			}
			if b["session_key"] != nil {
				t.Errorf("session_key without one: got %v, want null", b["session_key"])
			}
		}
	})
	t.Run("SizesAreLimits", func(t *testing.T) {
		h := open(t)
		for name, wantLimits := range map[string][2]float64{"small": {1, 1024}, "medium": {2, 4096}, "large": {4, 8192}} {
			s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"size": name})
			if got := [2]float64{s.CPUCores, float64(s.MemoryMB)}; got != wantLimits {
				t.Errorf("%s: got %v, want %v", name, got, wantLimits)
			}
		}
	})
	t.Run("SizesAreThoseOfTheOperator", func(t *testing.T) {
		h := open(t, func(o *rest.Options) { o.Services.Sizes = sandbox.Sizes{{Name: "tiny", CPU: 0.5, MemoryMB: 128}} })
		if s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"size": "tiny", "cpu_cores": 0.5}); s.CPUCores != 0.5 || s.MemoryMB != 128 {
			t.Errorf("got %v cores and %d MiB", s.CPUCores, s.MemoryMB)
		}
		if l := want[v1.SandboxLimits](h, 200, "GET", "/v1/limits", nil); len(l.Sizes) != 1 || l.Sizes[0] != (v1.Size{Name: "tiny", CPUCores: 0.5, MemoryMB: 128}) {
			t.Errorf("got %v", l.Sizes)
		}
		for _, body := range []object{{"size": "small"}, {"size": ""}} {
			for method, path := range map[string]string{"POST": "/v1/sandboxes", "PATCH": "/v1/sandboxes/k"} {
				p := want[v1.Problem](h, 422, method, path, body)
				if p.Code != "invalid" || !strings.Contains(p.Detail, "tiny") {
					t.Errorf("%s %v: got %s: %s", method, body, p.Code, p.Detail)
				}
			}
		}
	})
	t.Run("NumbersGoBeforeASize", func(t *testing.T) {
		h := open(t)
		is := func(s v1.Sandbox, cpu float64, memory int) {
			t.Helper()
			if s.CPUCores != cpu || s.MemoryMB != memory {
				t.Errorf("got %v cores and %d MiB, want %v and %d", s.CPUCores, s.MemoryMB, cpu, memory)
			}
		}
		is(want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "k", "size": "medium", "cpu": 0.5, "disk_mb": 100}), 0.5, 4096)
		is(want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/k", object{"size": "small"}), 1, 1024)
		is(want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/k", object{"size": "large", "memory_mb": 2048}), 4, 2048)
		s := want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/k", object{"size": "small", "cpu_cores": 3, "memory_mb": 512})
		if is(s, 3, 512); s.DiskMB != 100 {
			t.Errorf("got a disk of %d MiB, which no size is about", s.DiskMB)
		}
	})
	t.Run("AKnownKeyGivesThatSandbox", func(t *testing.T) {
		h := open(t)
		a := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "mine"})
		b := want[v1.Sandbox](h, 200, "POST", "/api/v1/sandboxes", object{"session_key": "mine"})
		if a.ID != b.ID {
			t.Errorf("got %s, want %s", b.ID, a.ID)
		}
		if c := want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/mine", nil); c.ID != a.ID {
			t.Errorf("by key: got %s, want %s", c.ID, a.ID)
		}
		p := want[v1.Problem](h, 409, "POST", "/v1/sandboxes", object{"key": "mine", "image": "node"})
		if p.Code != "exists" {
			t.Errorf("code: got %q, want exists", p.Code)
		}
	})
	t.Run("AnEmptyBodyIsAllDefaults", func(t *testing.T) {
		h := open(t)
		s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", nil)
		if s.MemoryMB != 512 || s.Versions["python"] != "3.13.5" {
			t.Errorf("got %+v, want the defaults, and what is in the image", s)
		}
	})
	t.Run("ValuesOfVariablesAreNeverShown", func(t *testing.T) {
		h := open(t)
		a := h.do("POST", "/v1/sandboxes", object{"env": object{"TOKEN": "s3cr3t"}})
		var s v1.Sandbox
		must(t, json.Unmarshal(a.body, &s))
		if diff := cmp.Diff(s.EnvNames, []string{"TOKEN"}); diff != "" {
			t.Error(diff)
		}
		for _, body := range [][]byte{a.body, h.do("GET", "/v1/sandboxes", nil).body, h.do("GET", "/v1/sandboxes/"+s.ID+"/activity", nil).body} {
			if bytes.Contains(body, []byte("s3cr3t")) {
				t.Errorf("the secret is in %s", body)
			}
		}
	})
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.create()
	path := "/v1/sandboxes/" + s.ID
	t.Run("ClocksAndLabelsChangeAtAnyTime", func(t *testing.T) {
		got := want[v1.Sandbox](h, 200, "PATCH", path, object{"idle_timeout_seconds": 60, "metadata": object{"a": "b"}, "timeout_seconds": 100})
		if got.IdleTimeoutSeconds != 60 || got.Metadata["a"] != "b" || got.ExpiresAt == nil {
			t.Errorf("got %+v", got)
		}
		if got := want[v1.Sandbox](h, 200, "PATCH", path, object{"ttl_seconds": 0}); got.ExpiresAt != nil {
			t.Errorf("expires_at after 0: got %v, want null", got.ExpiresAt)
		}
	})
	t.Run("LimitsChangeWhetherItRunsOrNot", func(t *testing.T) {
		set := want[v1.Sandbox](h, 200, "PATCH", path, object{"env_set": object{"ONE": "1", "TWO": "2"}, "timeout_seconds": 100})
		if got := want[v1.Sandbox](h, 200, "PATCH", path, object{"env_unset": []string{"ONE"}, "extend_to": set.ExpiresAt.Add(time.Hour)}); !got.ExpiresAt.Equal(set.ExpiresAt.Add(time.Hour)) {
			t.Errorf("extended to %v, from %v", got.ExpiresAt, set.ExpiresAt)
		}
		want[v1.Sandbox](h, 200, "PATCH", path, object{"ttl_seconds": 0})
		key := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "once", "if_exists": "refuse"})
		if p := want[v1.Problem](h, 409, "POST", "/v1/sandboxes", object{"key": "once", "if_exists": "refuse"}); p.Code != "exists" || !strings.Contains(p.Detail, key.ID) {
			t.Errorf("got %+v", p)
		}
		want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes", object{"key": "once", "if_exists": "get"})
		want[v1.Problem](h, 422, "POST", "/v1/sandboxes", object{"key": "once", "if_exists": "delete"})
		if got := want[v1.Sandbox](h, 200, "PATCH", path, object{"memory_mb": 300, "pids": 99, "disk_mb": 4096}); got.MemoryMB != 300 || got.Pids != 99 || got.DiskMB != 4096 || got.Status != "running" {
			t.Errorf("got %+v", got)
		}
		if got := want[v1.Sandbox](h, 200, "POST", path+"/stop", nil); got.Status != "stopped" || got.StoppedAt == nil || got.StopCause != "user" {
			t.Errorf("stop: got %+v", got)
		}
		if got := want[v1.Sandbox](h, 200, "PATCH", path, object{"memory_mb": 256, "cpu": 2, "env_vars": object{"X": "y"}}); got.MemoryMB != 256 || got.CPUCores != 2 {
			t.Errorf("got %+v", got)
		}
		if got := want[v1.Sandbox](h, 200, "POST", path+"/start", nil); got.Status != "running" || got.StoppedAt != nil {
			t.Errorf("start: got %+v", got)
		}
		if r := want[v1.ExecResult](h, 200, "POST", path+"/exec", object{"command": "echo $X"}); r.Stdout != "y\n" {
			t.Errorf("the new variable: got %q, want y", r.Stdout)
		}
	})
	t.Run("NetworkIsUnsupported", func(t *testing.T) {
		p := want[v1.Problem](h, 501, "PATCH", path, object{"network_enabled": true})
		if p.Code != "unsupported" {
			t.Errorf("got %+v", p)
		}
		want[v1.Sandbox](h, 200, "PATCH", path, object{"network_enabled": false})
	})
}

func TestList(t *testing.T) {
	t.Parallel()
	h := open(t)
	var ids []string
	for i := range 5 {
		s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": fmt.Sprintf("box-%d", i), "metadata": object{"odd": fmt.Sprint(i%2 == 1)}})
		ids = append(ids, s.ID)
	}
	want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box-0/stop", nil)
	slices.Reverse(ids)
	names := func(p v1.SandboxPage) (out []string) {
		for _, s := range p.Items {
			out = append(out, s.ID)
		}
		return out
	}
	t.Run("NumberedPages", func(t *testing.T) {
		p := want[v1.SandboxPage](h, 200, "GET", "/api/v1/sandboxes?page=2&page_size=2", nil)
		if diff := cmp.Diff(names(p), ids[2:4]); diff != "" {
			t.Error(diff)
		}
		if p.Total != 5 || *p.Page != 2 || p.PageSize != 2 {
			t.Errorf("got %+v", p)
		}
		if diff := cmp.Diff(p.StatusCounts, map[string]int{
			"running": 4, "stopped": 1, "archiving": 0, "archived": 0, "unarchiving": 0, "creating": 0, "pausing": 0, "paused": 0, "resuming": 0, "starting": 0, "stopping": 0, "restoring": 0, "failed": 0, "deleting": 0,
		}); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("CursorsReachAll", func(t *testing.T) {
		var got []string
		path := "/v1/sandboxes?limit=2&sort_order=asc"
		for cursor := ""; ; {
			p := want[v1.SandboxPage](h, 200, "GET", path+cursor, nil)
			got = append(got, names(p)...)
			if p.NextCursor == nil {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(*p.NextCursor)
		}
		slices.Reverse(got)
		if diff := cmp.Diff(got, ids); diff != "" {
			t.Error(diff)
		}
	})
	for query, n := range map[string]int{
		"status=running": 4, "state=stopped": 1, "status=running,stopped": 5, "status=running&state=running": 4, "search=BOX-3": 1,
		"metadata.odd=true": 2, "metadata.odd=true&metadata.no=x": 0, "image=python": 5, "image=node": 0, "sort_by=created_at": 5,
	} {
		t.Run(query, func(t *testing.T) {
			if p := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes?"+query, nil); p.Total != n || len(p.Items) != n {
				t.Errorf("got %d of %d, want %d", len(p.Items), p.Total, n)
			}
		})
	}
	t.Run("AnotherProjectSeesNothing", func(t *testing.T) {
		other := h.as("other", access.SandboxesRead, access.SandboxesWrite)
		if p := want[v1.SandboxPage](other, 200, "GET", "/v1/sandboxes", nil); p.Total != 0 || p.Items == nil {
			t.Errorf("got %+v, want an empty list", p)
		}
		for _, path := range []string{"", "/files", "/activity", "/processes", "/stat"} {
			if p := want[v1.Problem](other, 404, "GET", "/v1/sandboxes/box-1"+path, nil); p.Code != "not_found" {
				t.Errorf("%s: got %+v", path, p)
			}
		}
	})
}

func TestDelete(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.create()
	if a := h.do("DELETE", "/v1/sandboxes/"+s.ID, nil); a.StatusCode != 204 || len(a.body) != 0 {
		t.Errorf("got %d %q, want 204 and nothing", a.StatusCode, a.body)
	}
	want[v1.Problem](h, 404, "DELETE", "/v1/sandboxes/"+s.ID, nil)
	want[v1.Problem](h, 404, "POST", "/v1/sandboxes/"+s.ID+"/exec", object{"command": "true"})
}

func TestScopes(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.create()
	reader := h.as("default", access.SandboxesRead)
	want[v1.Sandbox](reader, 200, "GET", "/v1/sandboxes/"+s.ID, nil)
	for _, r := range [][2]string{
		{"POST", "/v1/sandboxes"}, {"PATCH", "/v1/sandboxes/" + s.ID}, {"DELETE", "/v1/sandboxes/" + s.ID}, {"POST", "/v1/sandboxes/" + s.ID + "/stop"},
		{"PUT", "/v1/sandboxes/" + s.ID + "/files/a"}, {"DELETE", "/v1/sandboxes/" + s.ID + "/files/a"}, {"GET", "/v1/tokens"}, {"POST", "/v1/images/python/build"},
	} {
		if p := want[v1.Problem](reader, 403, r[0], r[1], nil); p.Code != "denied" || p.Remedy == "" {
			t.Errorf("%s %s: got %+v", r[0], r[1], p)
		}
	}
	want[v1.Problem](reader, 403, "POST", "/v1/sandboxes/"+s.ID+"/exec", object{"command": "true"})
}
