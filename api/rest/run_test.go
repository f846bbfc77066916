// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/sandbox"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	h := open(t)
	commands := func(list ...object) object { return object{"commands": list, "wait_seconds": 60} }

	t.Run("AreTakenAtOnceAndWaitedFor", func(t *testing.T) {
		a := h.do("POST", "/v1/sandboxes/box/runs", object{"commands": []object{{"shell": "echo hi"}}})
		r := want[v1.Run](h, 200, "GET", a.Header.Get("Location"), nil)
		checktest.Equal(t, "StatusCode", a.StatusCode, http.StatusAccepted)
		checktest.Equal(t, "Identifier", r.Identifier, "box")
		checktest.Equal(t, "StatusURL", r.StatusURL, "/v1/runs/"+r.RunID)
		checktest.Equal(t, "EventsURL", r.EventsURL, r.StatusURL+"/events")
		done := want[v1.Run](h, 202, "POST", "/api/v1/sandboxes/box/runs", object{
			"commands": []object{
				{"shell": "echo $A $B", "env": object{"B": "own"}}, {"argv": []string{"false"}, "allow_failure": true},
				{"shell": "sleep 60", "timeout_ms": 100}, {"shell": "echo last"},
			},
			"default_env": object{"A": "all", "B": "all"}, "default_cwd": "/", "continue_on_error": true, "ttl_seconds": 600, "wait_seconds": 60,
		})
		c := done.Commands
		checktest.Equal(t, "State", done.State, "failed")
		checktest.Equal(t, "Stdout", c[0].Stdout, "all own\n")
		checktest.Equal(t, "Status", c[1].Status, "failed")
		checktest.Equal(t, "Status", c[2].Status, "timed_out")
		checktest.Equal(t, "Stdout", c[3].Stdout, "last\n")
		if c[0].Env["B"] != "(hidden)" {
			t.Errorf("variables: %v", c[0].Env)
		}
		if s := want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/box", nil); s.ID != done.SandboxID {
			t.Errorf("it ran in %s, and box is %s", done.SandboxID, s.ID)
		}
	})

	t.Run("AreListedNewestFirstWithoutTheirCommands", func(t *testing.T) {
		last := want[v1.Run](h, 202, "POST", "/v1/sandboxes/other/runs", commands(object{"shell": "true"}))
		all := want[v1.RunList](h, 200, "GET", "/v1/runs", nil)
		checktest.Len(t, "Items", all.Items, 3)
		checktest.Equal(t, "Items[0].RunID", all.Items[0].RunID, last.RunID)
		checktest.Len(t, "Items[0].Commands", all.Items[0].Commands, 0)
		checktest.Absent(t, "NextCursor", all.NextCursor)
		for _, no := range []string{"none", "0123456789abcdef"} {
			want[v1.Problem](h, 404, "GET", "/v1/sandboxes/"+no+"/runs", nil)
		}
		page := want[v1.RunList](h, 200, "GET", "/v1/sandboxes/box/runs?limit=1", nil)
		checktest.Len(t, "Items", page.Items, 1)
		checktest.Some(t, "NextCursor", page.NextCursor)
		checktest.Equal(t, "Items[0].Identifier", page.Items[0].Identifier, "box")
		page = want[v1.RunList](h, 200, "GET", "/v1/sandboxes/box/runs?limit=1&cursor="+*page.NextCursor, nil)
		if len(page.Items) != 1 || page.NextCursor != nil {
			t.Errorf("the last page: %+v", page)
		}
	})

	t.Run("AreFollowed", func(t *testing.T) {
		r := want[v1.Run](h, 202, "POST", "/v1/sandboxes/box/runs", commands(object{"shell": "echo hi"}))
		a := h.do("GET", r.EventsURL, nil)
		if text := string(a.body); a.StatusCode != 200 || !strings.Contains(text, "id: 1\nevent: run_started\n") || !strings.Contains(text, `"chunk":"hi\n"`) || !strings.Contains(text, "event: run_finished\n") {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
		a = h.do("GET", r.EventsURL+"?after=1", nil)
		if text := string(a.body); strings.Contains(text, "run_started") || !strings.Contains(text, "id: 2\n") {
			t.Errorf("after the first: %s", text)
		}
		want[v1.Problem](h, 422, "GET", r.EventsURL+"?after=99", nil)
	})

	t.Run("AreCanceled", func(t *testing.T) {
		r := want[v1.Run](h, 202, "POST", "/v1/sandboxes/box/runs", object{"commands": []object{{"shell": "sleep 600"}}})
		for range 2 {
			if got := want[v1.Run](h, 200, "POST", "/v1/runs/"+r.RunID+"/cancel", nil); got.State != "canceled" {
				t.Errorf("got %+v", got)
			}
		}
	})

	t.Run("AreOfTheirProject", func(t *testing.T) {
		r := want[v1.Run](h, 202, "POST", "/v1/sandboxes/box/runs", commands(object{"shell": "true"}))
		stranger := h.as("other", access.SandboxesRead, access.SandboxesWrite)
		for _, path := range []string{"", "/events"} {
			want[v1.Problem](stranger, 404, "GET", "/v1/runs/"+r.RunID+path, nil)
		}
		want[v1.Problem](stranger, 404, "POST", "/v1/runs/"+r.RunID+"/cancel", nil)
		want[v1.Problem](stranger, 404, "POST", "/v1/runs/"+r.RunID+"/links", object{"path": "x"})
		reader := h.as("default", access.SandboxesRead)
		want[v1.Run](reader, 200, "GET", "/v1/runs/"+r.RunID, nil)
		want[v1.Problem](reader, 403, "POST", "/v1/runs/"+r.RunID+"/cancel", nil)
		want[v1.Problem](reader, 403, "POST", "/v1/sandboxes/box/runs", commands(object{"shell": "true"}))
	})

	t.Run("AreRefusedWhereTheyAreWrong", func(t *testing.T) {
		for name, c := range map[string]struct {
			body  object
			field string
		}{
			"nothing":     {object{}, "commands"},
			"none":        {object{"commands": []object{}}, "commands"},
			"empty":       {commands(object{}), "commands[0].command"},
			"relative":    {commands(object{"shell": "true", "cwd": "x"}), "commands[0].cwd"},
			"a long time": {commands(object{"shell": "true", "timeout_ms": 86_400_001}), "commands[0].timeout_ms"},
			"no time":     {commands(object{"shell": "true", "timeout_ms": 0}), "commands[0].timeout_ms"},
			"a ttl":       {object{"commands": []object{{"shell": "true"}}, "ttl_seconds": 604_801}, "ttl_seconds"},
			"a user":      {object{"commands": []object{{"shell": "true"}}, "as_user": "w w w"}, "as_user"},
		} {
			p := want[v1.Problem](h, 422, "POST", "/v1/sandboxes/box/runs", c.body)
			if len(p.Errors) == 0 || p.Errors[0].Field != c.field {
				t.Errorf("%s: got %+v, want the field %s", name, p, c.field)
			}
		}
		want[v1.Problem](h, 404, "POST", "/v1/sandboxes/"+string(sandbox.NewID())+"/runs", commands(object{"shell": "true"}))
		want[v1.Problem](h, 404, "GET", "/v1/runs/nonsense", nil)
	})
}
