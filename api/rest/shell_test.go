// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
)

func TestShells(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("this host has no bash, which the memory runtime would run")
	}
	h := open(t)
	for _, base := range []string{"/v1", "/api/v1"} {
		t.Run("KeepWhatTheirCommandsLeave"+base, func(t *testing.T) {
			shells := base + "/sandboxes/" + h.create().ID + "/shells"
			run := func(name string, body object) v1.ShellExecResult {
				t.Helper()
				return want[v1.ShellExecResult](h, 200, "POST", shells+"/"+name+"/exec", body)
			}
			r := run("main", object{"command": "x=5; echo out; echo err >&2; (exit 3)"})
			if r.Stdout != "out\n" || r.Stderr != "err\n" || *r.ExitCode != 3 || r.Shell.Name != "main" || r.Shell.Restarted != "" || r.ProcessID == "" || r.FilesChanged == nil {
				t.Errorf("got %+v", r)
			}
			if r := run("main", object{"argv": []string{"echo", "$x"}}); r.Stdout != "$x\n" {
				t.Errorf("got %+v", r)
			}
			bytes := base64.StdEncoding.EncodeToString([]byte("\x00\xff"))
			if r := run("main", object{"command": "cat; echo $x", "stdin_base64": bytes}); r.StdoutBase64 != base64.StdEncoding.EncodeToString([]byte("\x00\xff5\n")) {
				t.Errorf("got %+v", r)
			}
			s := want[v1.Shell](h, 200, "GET", shells+"/main", nil)
			if s.Status != "idle" || s.ShellID != r.Shell.ShellID || s.UsedAt == nil || s.ProcessID == "" || s.User != "sandbox" {
				t.Errorf("got %+v", s)
			}
			if a := h.do("POST", shells, object{"name": "dev", "env": object{"E": "mine"}}); a.StatusCode != 201 || !strings.HasSuffix(a.Header.Get("Location"), "/shells/dev") {
				t.Errorf("got %d %s", a.StatusCode, a.body)
			}
			if r := run("dev", object{"command": "echo $E; exit 7"}); r.Stdout != "mine\n" || *r.ExitCode != 7 || !r.Shell.Ended {
				t.Errorf("got %+v", r)
			}
			if r := run("dev", object{"command": "true"}); r.Shell.Restarted == "" {
				t.Errorf("got %+v", r)
			}
			if l := want[v1.ShellList](h, 200, "GET", shells, nil); len(l.Items) != 2 || l.Items[1].Name != "dev" {
				t.Errorf("got %+v", l)
			}
			want[struct{}](h, 204, "DELETE", shells+"/dev", nil)
			want[v1.Problem](h, 404, "GET", shells+"/dev", nil)
		})
	}
	box := "/v1/sandboxes/" + h.create().ID
	main := box + "/shells/main"
	t.Run("HaveCommandsThatAreProcesses", func(t *testing.T) {
		a := h.do("POST", main+"/exec", object{
			"command": "echo one; read line; echo got $line; trap 'echo hung up; exit 9' HUP; while :; do sleep 0.1; done", "stream_stdin": true, "name": "asks", "labels": object{"a": "b"}, "wait_seconds": 0.01,
		})
		if a.StatusCode != 202 {
			t.Fatalf("got %d %s", a.StatusCode, a.body)
		}
		asks := box + "/processes/name:asks"
		output := func(has string) {
			t.Helper()
			var got []byte
			for range 600 {
				if got = h.do("GET", asks+"/logs", nil).body; strings.Contains(string(got), has) {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
			t.Fatalf("%q is not in %s", has, got)
		}
		output("one")
		if p := want[v1.Process](h, 200, "GET", asks, nil); p.Status != "running" || p.Name != "asks" || p.Labels["a"] != "b" {
			t.Errorf("got %+v", p)
		}
		want[v1.ProcessInput](h, 200, "POST", asks+"/stdin", []byte("forty-two\n"))
		output("got forty-two")
		want[v1.Process](h, 202, "GET", asks+"/wait?timeout=0.01", nil)
		id := want[v1.Process](h, 200, "GET", asks, nil).ProcessID
		want[struct{}](h, 204, "POST", main+"/interrupt", nil)
		done := want[v1.Process](h, 200, "GET", box+"/processes/"+id+"/wait?timeout=60", nil)
		if done.Status != "exited" || done.ExitCode == nil || *done.ExitCode != 130 {
			t.Errorf("got %+v", done)
		}
		if got := string(h.do("GET", box+"/processes/"+id+"/logs", nil).body); !strings.HasPrefix(got, "one\ngot forty-two\n") {
			t.Errorf("after its end: %s", got)
		}
		if all := h.follow(box + "/processes/" + id + "/output"); len(all) < 2 || !strings.HasPrefix(all[len(all)-1], "event: exit\n") {
			t.Errorf("its frames: %q", all)
		}
	})
	t.Run("GiveAHandleToWhoDoesNotWait", func(t *testing.T) {
		a := h.do("POST", main+"/exec", object{"command": "echo one; sleep 1000", "wait_seconds": 0.2})
		where := strings.TrimPrefix(a.Header.Get("Location"), "/v1")
		if a.StatusCode != 202 || !strings.Contains(string(a.body), `"status":"running"`) || where == "" {
			t.Fatalf("got %d %s", a.StatusCode, a.body)
		}
		r := want[v1.ShellExecResult](h, 202, "GET", "/v1"+where+"?wait_seconds=0.01", nil)
		for n := 0; r.Stdout == "" && n < 100; n++ { // on a busy machine it may not have begun
			r = want[v1.ShellExecResult](h, 202, "GET", "/v1"+where+"?wait_seconds=0.1", nil)
		}
		if r.Stdout != "one\n" || r.ExitCode != nil {
			t.Errorf("got %+v", r)
		}
		want[v1.Problem](h, 409, "POST", main+"/exec", object{"command": "true", "wait_seconds": 0.05})
		want[struct{}](h, 204, "POST", main+"/interrupt", nil)
		if r := want[v1.ShellExecResult](h, 200, "GET", "/v1"+where+"?wait_seconds=60", nil); *r.ExitCode != 130 || r.Shell.Ended {
			t.Errorf("got %+v", r)
		}
		want[v1.Problem](h, 409, "POST", main+"/interrupt", nil)
	})
	t.Run("Stream", func(t *testing.T) {
		a := h.do("POST", main+"/exec", object{"command": "y=1; echo out; echo err >&2"}, "Accept", "text/event-stream")
		text := string(a.body)
		for _, part := range []string{"event: start\n", "event: stdout\nid: ", `"data":"out\n"`, "event: stderr\n", "event: exit\n", `"exit_code":0`, `"shell":{"name":"main"`} {
			if !strings.Contains(text, part) {
				t.Errorf("there is no %q in %s", part, text)
			}
		}
		if a := h.do("POST", main+"/exec", object{"command": "true", "cwd": "/tmp"}, "Accept", "text/event-stream"); a.StatusCode != 422 {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("RefuseWhatMakesNoSense", func(t *testing.T) {
		odd := box + "/shells/" + url.PathEscape("it's %2F ü?#")
		if got := want[v1.ShellExecResult](h, 200, "POST", odd+"/exec", object{"command": "echo odd"}); got.Stdout != "odd\n" || got.Shell.Name != "it's %2F ü?#" {
			t.Errorf("got %+v", got)
		}
		want[v1.Shell](h, 200, "GET", odd, nil)
		if a := h.do("DELETE", odd, nil); a.StatusCode != 204 {
			t.Errorf("got %d", a.StatusCode)
		}
		for _, c := range []struct {
			status       int
			method, path string
			body         object
			names        string
		}{
			{422, "POST", main + "/exec", object{}, "command"},
			{422, "POST", main + "/exec", object{"command": "true", "cwd": "x"}, "cwd"},
			{422, "POST", main + "/exec", object{"command": "true", "as_user": "bin"}, "user"},
			{422, "POST", main + "/exec", object{"command": "true", "as_user": "root"}, "user"},
			{422, "POST", box + "/shells/a%2Fb/exec", object{"command": "true"}, "name"},
			{422, "POST", box + "/shells/a%07b/exec", object{"command": "true"}, "name"},
			{422, "POST", box + "/shells", object{"name": ""}, "name"},
			{422, "POST", box + "/shells", object{"name": "../x"}, "name"},
			{409, "POST", box + "/shells", object{"name": "main"}, "main"},
			{404, "GET", box + "/shells/nope", nil, "nope"},
			{404, "DELETE", box + "/shells/nope", nil, "nope"},
			{404, "GET", main + "/commands/nope", nil, "nope"},
			{422, "GET", main + "/commands/nope?wait_seconds=-1", nil, "wait_seconds"},
		} {
			var body any
			if c.body != nil {
				body = c.body
			}
			p := want[v1.Problem](h, c.status, c.method, c.path, body)
			if !strings.Contains(fmt.Sprint(p.Detail, p.Errors), c.names) {
				t.Errorf("%s %s %v: got %+v", c.method, c.path, c.body, p)
			}
		}
	})
}
