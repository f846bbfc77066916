// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "sandpit.dev/api/v1"
)

func TestCreateExec(t *testing.T) {
	t.Parallel()
	t.Run("OneRequestGivesASandboxAndAResult", func(t *testing.T) {
		h := open(t)
		body := object{"command": "cat >> f; echo $A $(wc -l < f)", "stdin": "x\n", "sandbox": object{"key": "chat-1", "env_vars": object{"A": "1"}}}
		r := want[v1.CreateExecResult](h, 200, "POST", "/v1/exec", body)
		if !r.SandboxCreated || *r.ExitCode != 0 || r.Stdout != "1 1\n" || len(r.FilesChanged) == 0 && r.FilesChangedComplete {
			t.Errorf("the first: got %+v", r)
		}
		again := want[v1.CreateExecResult](h, 200, "POST", "/api/v1/exec", body)
		if again.SandboxCreated || again.SandboxID != r.SandboxID || again.Stdout != "1 2\n" {
			t.Errorf("the second: got %+v", again)
		}
		if s := want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/chat-1", nil); s.ID != r.SandboxID {
			t.Errorf("the sandbox: got %+v", s)
		}
	})
	t.Run("WithoutAWordOfTheSandboxItIsANewOne", func(t *testing.T) {
		h := open(t)
		a := want[v1.CreateExecResult](h, 200, "POST", "/v1/exec", object{"argv": []string{"true"}})
		b := want[v1.CreateExecResult](h, 200, "POST", "/v1/exec", object{"argv": []string{"true"}})
		if a.SandboxID == b.SandboxID || !a.SandboxCreated || !b.SandboxCreated {
			t.Errorf("got %+v and %+v", a.ExecPlace, b.ExecPlace)
		}
	})
	t.Run("WhatGoesOnIsFoundByItsLocation", func(t *testing.T) {
		h := open(t)
		a := h.do("POST", "/v1/exec", object{"command": "sleep 600", "wait_seconds": 0.05})
		if a.StatusCode != 202 {
			t.Fatalf("got %d %s", a.StatusCode, a.body)
		}
		if id := a.Header.Get("Sandpit-Sandbox-Id"); !strings.Contains(a.Header.Get("Location"), "/"+id+"/") || id == "" {
			t.Errorf("it is in %q, and %q is where it goes on", id, a.Header.Get("Location"))
		}
		p := want[v1.Process](h, 200, "GET", a.Header.Get("Location"), nil)
		if id := a.Header.Get("Sandpit-Process-Id"); p.ProcessID != id || p.Status != "running" {
			t.Errorf("got %+v, and the header %q", p, id)
		}
	})
	t.Run("EachWrongFieldIsNamedWhereItStands", func(t *testing.T) {
		h := open(t)
		for name, c := range map[string]struct {
			body object
			want []string
		}{
			"what the wire knows": {object{"timeout_seconds": 0, "sandbox": object{"session_key": "a/b"}},
				[]string{"command", "timeout_seconds", "sandbox.session_key"}},
			"what the engine knows": {object{"command": "true", "sandbox": object{"env_vars": object{"1A": ""}, "runtime": "vax"}},
				[]string{"sandbox.env_vars", "sandbox.runtime"}},
			"what is no field, or of another type": {object{"command": "true", "sandbox": object{"imaeg": "python", "memory_mb": "1", "volumes": []any{object{"path": 1}}}},
				[]string{"sandbox.imaeg", "sandbox.memory_mb", "sandbox.volumes[0].path"}},
			"what is no object":    {object{"command": "true", "sandbox": "chat-1"}, []string{"sandbox"}},
			"of the command alone": {object{"command": "true", "env": object{"1A": ""}, "sandbox": object{"runtime": "vax"}}, []string{"env"}},
		} {
			p := want[v1.Problem](h, 422, "POST", "/v1/exec", c.body)
			var got []string
			for _, f := range p.Errors {
				got = append(got, f.Field)
				if !strings.Contains(p.Detail, f.Field) {
					t.Errorf("%s: %q does not name %q", name, p.Detail, f.Field)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (-want +got)\n%s", name, d)
			}
		}
		if l := want[v1.SandboxList](h, 200, "GET", "/v1/sandboxes", nil); len(l.Items) != 0 {
			t.Errorf("%d sandboxes were made", len(l.Items))
		}
	})
	t.Run("AStreamSaysWhereFirst", func(t *testing.T) {
		h := open(t)
		resp, events := h.stream("/v1/exec", `{"command":"echo one","sandbox":{"key":"k"}}`)
		var got []string
		for events.Scan() {
			if !strings.HasPrefix(events.Text(), ":") {
				got = append(got, events.Text())
			}
		}
		id := want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/k", nil).ID
		process := resp.Header.Get("Sandpit-Process-Id")
		if process == "" && len(got) > 0 { // a busy machine: the answer began before the process
			_, process, _ = strings.Cut(got[0], `"process_id":"`)
			process, _, _ = strings.Cut(process, `"`)
		}
		if process == "" || len(got) != 3 || got[0] != "event: start\ndata: {\"process_id\":\""+process+"\",\"sandbox_id\":\""+id+"\"}" ||
			!strings.Contains(got[1], `"one\n"`) || !strings.Contains(got[2], `"sandbox_id":"`+id+`","sandbox_created":true,`) {
			t.Errorf("got %q", got)
		}
		gone := h.do("POST", "/v1/exec", object{"command": "true", "cwd": "nosuch"})
		if id := gone.Header.Get("Sandpit-Sandbox-Id"); gone.StatusCode == 200 || id != "" {
			t.Errorf("one that cannot begin: got %d, and the sandbox %q, which is gone", gone.StatusCode, id)
		}
		// A stream says that it goes on after a while, where a busy machine takes as long to try; the error is an event then.
		resp, events = h.stream("/v1/exec", `{"command":"true","cwd":"nosuch"}`)
		if resp.StatusCode == 200 {
			last := ""
			for events.Scan() {
				last = events.Text()
			}
			if !strings.HasPrefix(last, "event: error\n") {
				t.Errorf("one that cannot begin: the stream ended with %q", last)
			}
		} else if kind := resp.Header.Get("Content-Type"); kind != v1.ProblemType {
			t.Errorf("one that cannot begin: got %d, %s", resp.StatusCode, kind)
		}
	})
}
