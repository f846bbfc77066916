// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/checktest"
)

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "box"})
	for range 2 {
		p := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/pause", nil)
		if p.ID != s.ID || p.Status != "paused" || p.StopCause != "user" || p.StoppedAt == nil || p.RunSeconds <= 0 {
			t.Errorf("got %+v", p)
		}
	}
	p := want[v1.Problem](h, 409, "POST", "/v1/sandboxes/box/exec", object{"command": "true"})
	if p.Code != "state" || !strings.Contains(p.Remedy, "resume") {
		t.Errorf("got %+v", p)
	}
	if got := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes?status=paused", nil); got.Total != 1 || got.StatusCounts["paused"] != 1 {
		t.Errorf("got %+v", got)
	}
	standing := want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/box", nil).RunSeconds
	if again := want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/box", nil).RunSeconds; again != standing {
		t.Errorf("the meter of a paused sandbox went from %v to %v", standing, again)
	}
	for range 2 {
		r := want[v1.Sandbox](h, 200, "POST", "/api/v1/sandboxes/box/resume", object{})
		checktest.Equal(t, "Status", r.Status, "running")
		checktest.Absent(t, "StoppedAt", r.StoppedAt)
		checktest.Equal(t, "StopCause", r.StopCause, "")
	}
	want[v1.ExecResult](h, 200, "POST", "/v1/sandboxes/box/exec", object{"command": "true"})
	want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/box", object{"auto_resume": true})
	want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/pause", nil)
	want[v1.ExecResult](h, 200, "POST", "/v1/sandboxes/box/exec", object{"command": "true"})
	want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/stop", nil)
	if p := want[v1.Problem](h, 409, "POST", "/v1/sandboxes/box/pause", nil); p.Code != "state" || p.Remedy == "" {
		t.Errorf("of a stopped one: got %+v", p)
	}
}

func TestArchiveAndStart(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "box", "archive_after_seconds": 86400})
	checktest.Equal(t, "ArchiveAfterSeconds", s.ArchiveAfterSeconds, 86400)
	h.says("box", "echo one > a")
	if p := want[v1.Problem](h, 409, "POST", "/v1/sandboxes/box/archive", nil); p.Code != "state" || !strings.Contains(p.Remedy, "stop") {
		t.Errorf("of one that runs: got %+v", p)
	}
	want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/stop", nil)
	for range 2 {
		a := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/archive", nil)
		if a.Status != "archived" || a.Archive == nil || a.Archive.SizeBytes <= 0 || a.Archive.DiskBytes <= 0 || a.Archive.Place == "" || !strings.HasPrefix(a.Archive.Digest, "sha256:") {
			t.Errorf("got %+v, %+v", a, a.Archive)
		}
	}
	if p := want[v1.Problem](h, 409, "POST", "/v1/sandboxes/box/exec", object{"command": "true"}); p.Code != "state" || !strings.Contains(p.Remedy, "start") {
		t.Errorf("got %+v", p)
	}
	if got := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes?status=archived", nil); got.Total != 1 || got.StatusCounts["archived"] != 1 || got.Items[0].Archive == nil {
		t.Errorf("got %+v", got)
	}
	r := want[v1.Sandbox](h, 200, "POST", "/api/v1/sandboxes/box/start", nil)
	if r.Status != "running" || r.Archive != nil {
		t.Errorf("got %+v", r)
	}
	checktest.Equal(t, "what its file says", h.says("box", "cat a"), "one\n")
	u := want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/box", object{"archive_after_seconds": 0})
	checktest.Equal(t, "ArchiveAfterSeconds", u.ArchiveAfterSeconds, 0)
	want[v1.Problem](h, 422, "PATCH", "/v1/sandboxes/box", object{"archive_after_seconds": -1})
}

func TestRollbackRestartAndReset(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "box"})
	h.says("box", "echo one > a")
	kept := want[v1.Snapshot](h, 201, "POST", "/v1/sandboxes/box/snapshots", object{"name": "before"})
	for _, to := range []string{"before", kept.ID} {
		h.says("box", "echo changed > a; echo new > b")
		got := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/rollback", object{"to": to})
		if got.ID != s.ID || got.Status != "running" || got.ParentSnapshot == nil || *got.ParentSnapshot != kept.ID {
			t.Errorf("%s: got %+v", to, got)
		}
		if out := h.says("box", "cat a; ls"); out != "one\na\n" {
			t.Errorf("%s: got %q", to, out)
		}
	}
	for body, field := range map[string]string{`{}`: "to", `{"to":""}`: "to", `{"to":1}`: "to", `{"snapshot":"before"}`: "snapshot"} {
		if p := want[v1.Problem](h, 422, "POST", "/v1/sandboxes/box/rollback", body); len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: got %+v", body, p)
		}
	}
	if p := want[v1.Problem](h, 404, "POST", "/v1/sandboxes/box/rollback", object{"to": "never"}); !strings.Contains(p.Detail, "never") || p.Remedy == "" {
		t.Errorf("got %+v", p)
	}
	got := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/rollback", object{"to": "base"})
	if out := h.says("box", "ls"); out != "" || got.ParentSnapshot != nil {
		t.Errorf("at the image: got %q and %v", out, got.ParentSnapshot)
	}
	h.says("box", "echo x > x")
	for _, query := range []string{"", "?keep_disk=true"} {
		before := want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/box", nil)
		got := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/restart"+query, nil)
		if got.ID != s.ID || got.Status != "running" || got.Ref() != "box" || !got.StartedAt.After(*before.StartedAt) {
			t.Errorf("%s: got %+v", query, got)
		}
		if out := h.says("box", "ls"); out != "x\n" {
			t.Errorf("after a restart%s: got %q", query, out)
		}
	}
	if p := want[v1.Problem](h, 422, "POST", "/v1/sandboxes/box/restart?keep_disk=false", nil); p.Errors[0].Field != "keep_disk" || !strings.Contains(p.Remedy, "/v1/sandboxes/box/reset") {
		t.Errorf("got %+v", p)
	}
	if got := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/reset", nil); got.ID != s.ID || got.Status != "running" || got.Ref() != "box" {
		t.Errorf("got %+v", got)
	}
	if out := h.says("box", "ls"); out != "" {
		t.Errorf("after a reset: got %q", out)
	}
}

func TestFork(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "box", "metadata": object{"team": "a"}, "env": object{"A": "1"}, "idle_action": "pause"})
	h.says("box", "echo one > a")
	want[v1.Snapshot](h, 201, "POST", "/v1/sandboxes/box/snapshots", object{"name": "before"})
	h.says("box", "echo two > a")

	one := want[v1.SandboxList](h, 201, "POST", "/v1/sandboxes/box/fork", nil)
	if len(one.Items) != 1 {
		t.Fatalf("got %+v", one)
	}
	f := one.Items[0]
	if f.ID == s.ID || f.Key != nil || f.Status != "running" || f.ForkedFrom == nil || *f.ForkedFrom != s.ID || f.Metadata["team"] != "a" ||
		!slices.Equal(f.EnvNames, []string{"A"}) || f.IdleAction != "pause" {
		t.Errorf("got %+v", f)
	}
	if out := h.says(f.ID, "cat a; echo $A; echo mine > a"); out != "two\n1\n" {
		t.Errorf("in the fork: got %q", out)
	}
	if out := h.says("box", "cat a"); out != "two\n" {
		t.Errorf("in its parent: got %q", out)
	}
	several := want[v1.SandboxList](h, 201, "POST", "/v1/sandboxes/box/fork", object{"count": 3, "from": "before", "metadata": object{"n": "1"}})
	for _, f := range several.Items {
		if out := h.says(f.ID, "cat a"); out != "one\n" || f.Metadata["n"] != "1" || f.Metadata["team"] != "" {
			t.Errorf("got %q in %+v", out, f)
		}
	}
	if len(several.Items) != 3 {
		t.Errorf("got %d, want 3", len(several.Items))
	}
	named := want[v1.SandboxList](h, 201, "POST", "/v1/sandboxes/box/fork", object{"key": "copy"})
	if len(named.Items) != 1 || named.Items[0].Ref() != "copy" {
		t.Errorf("got %+v", named)
	}
	total := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes", nil).Total
	for body, status := range map[string]int{
		`{"count":0}`: 422, `{"count":101}`: 422, `{"count":-1}`: 422, `{"count":"x"}`: 422, `{"count":2,"key":"two"}`: 422, `{"key":"a/b"}`: 422, `{"key":""}`: 422,
		`{"from":""}`: 422, `{"from":"never"}`: 404, `{"key":"copy"}`: 409, `{"metadata":{"a":1}}`: 422,
	} {
		if p := want[v1.Problem](h, status, "POST", "/v1/sandboxes/box/fork", body); p.Detail == "" {
			t.Errorf("%s: got %+v", body, p)
		}
	}
	if now := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes", nil).Total; now != total {
		t.Errorf("there are %d sandboxes, want %d: something came of a refusal", now, total)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.t = t
	want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "box"})
	h.says("box", "echo one > a; echo two > b")
	want[v1.Snapshot](h, 201, "POST", "/v1/sandboxes/box/snapshots", object{"name": "before"})
	h.says("box", `echo changed > a; rm b; echo new > c; printf x > "$(printf 'odd\377')"`)
	want[v1.Snapshot](h, 201, "POST", "/v1/sandboxes/box/snapshots", object{"name": "after"})
	for query, n := range map[string]int{"from=before": 4, "from=before&to=now": 4, "from=before&to=after": 4, "from=after": 0, "from=after&to=before": 4, "from=before&to=before": 0} {
		d := want[v1.Diff](h, 200, "GET", "/v1/sandboxes/box/diff?"+query, nil)
		if len(d.Items) != n || d.Total != n || d.Truncated || d.Items == nil {
			t.Errorf("%s: got %+v, want %d changes", query, d, n)
		}
	}
	var got []string
	d := want[v1.Diff](h, 200, "GET", "/v1/sandboxes/box/diff?from=before", nil)
	for _, c := range d.Items {
		name := c.Path[strings.LastIndex(c.Path, "/")+1:]
		got = append(got, fmt.Sprintf("%s %s %d %v", c.Action, name, c.SizeBytes, c.Escaped))
	}
	if want := []string{"modified a 8 false", "deleted b 0 false", "created c 4 false", `created odd\xff 1 true`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if d.From != "before" || d.To != "now" {
		t.Errorf("got %q to %q", d.From, d.To)
	}
	if d := want[v1.Diff](h, 200, "GET", "/v1/sandboxes/box/diff", nil); d.From != "base" || d.Total < 3 {
		t.Errorf("of the image: got %+v", d)
	}
	if d := want[v1.Diff](h, 200, "GET", "/v1/sandboxes/box/diff?from=before&limit=1", nil); len(d.Items) != 1 || d.Total != 4 || !d.Truncated {
		t.Errorf("of one: got %+v", d)
	}
	for query, status := range map[string]int{"limit=0": 422, "limit=10001": 422, "limit=10000": 200, "limit=x": 422, "from=never": 404, "to=never": 404, "nosuch=1": 422} {
		want[v1.Problem](h, status, "GET", "/v1/sandboxes/box/diff?"+query, nil)
	}
}

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	h := open(t)
	want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "box", "checkpoints": "command"})
	res := want[v1.ExecResult](h, 200, "POST", "/v1/sandboxes/box/exec", object{"command": "echo x > x"})
	if res.SnapshotID == "" {
		t.Fatalf("got %+v, want a checkpoint", res)
	}
	if s := want[v1.Snapshot](h, 200, "GET", "/v1/snapshots/"+res.SnapshotID, nil); !s.Auto || s.Name != nil {
		t.Errorf("got %+v", s)
	}
	want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/box", object{"checkpoints": "off"})
	if res := want[v1.ExecResult](h, 200, "POST", "/v1/sandboxes/box/exec", object{"command": "echo y > x"}); res.SnapshotID != "" {
		t.Errorf("with none wanted: got the checkpoint %s", res.SnapshotID)
	}
}

func TestClocks(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "box"})
	checktest.Equal(t, "the defaults, IdleAction", s.IdleAction, "stop")
	checktest.Equal(t, "the defaults, AutoDelete", s.AutoDelete, false)
	checktest.Absent(t, "the defaults, TTLMode", s.TTLMode)
	checktest.Absent(t, "the defaults, TTLSeconds", s.TTLSeconds)
	checktest.Equal(t, "the defaults, AutoStart", s.AutoStart, true)
	checktest.Equal(t, "the defaults, AutoResume", s.AutoResume, false)
	checktest.Equal(t, "the defaults, Checkpoints", s.Checkpoints, "off")
	patch := func(body object) v1.Sandbox {
		t.Helper()
		return want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/box", body)
	}
	if s := patch(object{"ttl_seconds": 600, "ttl_mode": "sliding"}); s.TTLSeconds == nil || *s.TTLSeconds != 600 || *s.TTLMode != "sliding" || s.ExpiresAt != nil {
		t.Errorf("sliding: got %+v", s)
	}
	if s := patch(object{"ttl_seconds": 700, "ttl_mode": "absolute"}); s.ExpiresAt == nil || s.TTLSeconds == nil || *s.TTLSeconds != 600 {
		t.Errorf("both: got %+v", s)
	}
	if s := patch(object{"ttl_seconds": 0, "ttl_mode": "sliding"}); s.TTLSeconds != nil || s.ExpiresAt == nil || *s.TTLMode != "absolute" {
		t.Errorf("absolute: got %+v", s)
	}
	if s := patch(object{"timeout_seconds": 0}); s.ExpiresAt != nil || s.TTLMode != nil {
		t.Errorf("none: got %+v", s)
	}
	s = patch(object{"idle_action": "pause", "auto_delete": true, "auto_start": false, "auto_resume": true, "checkpoints": "command", "env": object{"B": "2"}, "memory_mb": 300, "pids": 99})
	if s.IdleAction != "pause" || !s.AutoDelete || s.AutoStart || !s.AutoResume || s.Checkpoints != "command" || !slices.Equal(s.EnvNames, []string{"B"}) || s.MemoryMB != 300 || s.Pids != 99 {
		t.Errorf("got %+v", s)
	}
	if out := h.says("box", "echo $B"); out != "2\n" {
		t.Errorf("a variable that was changed live: got %q", out)
	}
	want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/resume", nil)
	if s := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/box/stop", nil); s.Status != "deleted" {
		t.Errorf("a stop with auto_delete: got %+v", s)
	}
	want[v1.Problem](h, 404, "GET", "/v1/sandboxes/box", nil)
	both := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"ttl_seconds": 60, "ttl_mode": "sliding", "timeout_seconds": 600})
	checktest.Some(t, "ExpiresAt", both.ExpiresAt)
	checktest.Points(t, "TTLSeconds", both.TTLSeconds, 60)
}
