// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/checktest"
)

const showsItself = `class Shown:
    def __repr__(self): return "plain"
    def _repr_html_(self): return "<b>html</b>"
    def _repr_markdown_(self): return "*md*"
    def _repr_latex_(self): return "$x$"
    def _repr_svg_(self): return "<svg/>"
    def _repr_json_(self): return {"a": [1]}
    def _repr_png_(self): return b"\x89PNG\r\n\x1a\nimage"
Shown()`

func TestRunCode(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("this host has no python3, which the memory runtime would run")
	}
	h := open(t)
	path := "/v1/sandboxes/" + h.create().ID
	run := func(t *testing.T, body object) v1.CodeResult {
		t.Helper()
		return want[v1.CodeResult](h, 200, "POST", path+"/code", body)
	}
	t.Run("VariablesLiveOn", func(t *testing.T) {
		first := run(t, object{"code": "x = 6\nprint('hi')"})
		checktest.Equal(t, "Status", first.Status, "ok")
		checktest.Equal(t, "Stdout", first.Stdout, "hi\n")
		checktest.Some(t, "ContextID", first.ContextID)
		checktest.Equal(t, "ExecutionCount", first.ExecutionCount, 1)
		checktest.Len(t, "Results", first.Results, 0)
		next := want[v1.CodeResult](h, 200, "POST", "/api"+path+"/code", object{"code": "x * 7", "language": "python", "context_id": first.ContextID})
		checktest.Len(t, "Results", next.Results, 1)
		checktest.Equal(t, "Results[0].Text", next.Results[0].Text, "42")
		checktest.Equal(t, "Results[0].Main", next.Results[0].Main, true)
		checktest.Equal(t, "ExecutionCount", next.ExecutionCount, 2)
	})
	t.Run("ValuesHaveAllTheirForms", func(t *testing.T) {
		r := run(t, object{"code": showsItself})
		if len(r.Results) != 1 {
			t.Fatalf("got %+v", r)
		}
		v := r.Results[0]
		if v.Text != "plain" || v.HTML != "<b>html</b>" || v.Markdown != "*md*" || v.LaTeX != "$x$" || v.SVG != "<svg/>" ||
			string(v.JSON) != `{"a":[1]}` || string(v.PNG) != "\x89PNG\r\n\x1a\nimage" {
			t.Errorf("got %+v", v)
		}
	})
	t.Run("AnErrorIsAResult", func(t *testing.T) {
		r := run(t, object{"code": "def f():\n    return 1 / 0\nf()"})
		if r.Status != "error" || r.ExitCode != 1 || r.Error == nil || r.Error.Name != "ZeroDivisionError" ||
			!strings.Contains(strings.Join(r.Error.Traceback, "\n"), "return 1 / 0") {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("OutputThatIsNoTextIsLossless", func(t *testing.T) {
		r := run(t, object{"code": "import sys; sys.stdout.buffer.write(b'a\\xffb')\nsys.stdout.flush()"})
		if r.Stdout != "a\uFFFDb" || r.StdoutBase64 != "Yf9i" {
			t.Errorf("got %q, %q", r.Stdout, r.StdoutBase64)
		}
	})
	t.Run("ATimeoutIsAResult", func(t *testing.T) {
		r := run(t, object{"code": "import time; time.sleep(600)", "timeout_seconds": 0.2})
		if r.Status != "timed_out" || !r.TimedOut || r.ContextEnded {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("RefusesWhatMakesNoSense", func(t *testing.T) {
		for name, body := range map[string]object{
			"NoLanguage":    {"code": "1", "language": "cobol"},
			"EmptyLanguage": {"code": "1", "language": ""},
			"NoTime":        {"code": "1", "timeout_seconds": 0},
			"Unknown":       {"code": "1", "lang": "python"},
			"BothUsers":     {"code": "1", "stateless": true, "user": "root", "as_user": "sandbox"},
			"NoBytes":       {"code": "1", "max_stdout_bytes": 0},
		} {
			if p := want[v1.Problem](h, 422, "POST", path+"/code", body); len(p.Errors) == 0 {
				t.Errorf("%s: %+v", name, p)
			}
		}
		want[v1.Problem](h, 404, "POST", path+"/code", object{"code": "1", "context_id": "nosuch"})
	})
	t.Run("Streams", func(t *testing.T) {
		for how, stream := range map[string]bool{"ByAccept": false, "ByField": true} {
			body := object{"code": "print('one', flush=True)\nimport sys; print('two', file=sys.stderr, flush=True)\n7"}
			accept := "text/event-stream"
			if stream {
				body["stream"], accept = true, ""
			}
			names, data := []string{}, map[string]string{}
			for line := range strings.SplitSeq(string(h.do("POST", path+"/code", body, "Accept", accept).body), "\n") {
				if name, ok := strings.CutPrefix(line, "event: "); ok {
					names = append(names, name)
				}
				if d, ok := strings.CutPrefix(line, "data: "); ok {
					data[names[len(names)-1]] = d
				}
			}
			if len(names) != 5 || names[0] != "start" || names[4] != "end" {
				t.Fatalf("%s: events %v", how, names)
			}
			var v v1.CodeValue
			var end v1.CodeOutcome
			if json.Unmarshal([]byte(data["result"]), &v) != nil || v.Text != "7" {
				t.Errorf("%s: the result is %s", how, data["result"])
			}
			if json.Unmarshal([]byte(data["end"]), &end) != nil || end.Status != "ok" || end.StdoutBytes != 4 {
				t.Errorf("%s: the end is %s", how, data["end"])
			}
		}
	})
	t.Run("ContextsAreMadeListedRestartedAndEnded", func(t *testing.T) {
		c := want[v1.Context](h, 201, "POST", path+"/code/contexts", object{"language": "bash", "env": object{"A": "1"}})
		checktest.Equal(t, "Language", c.Language, "bash")
		checktest.Equal(t, "Status", c.Status, "idle")
		checktest.Equal(t, "Default", c.Default, false)
		checktest.Equal(t, "Cwd", c.Cwd, "/workspace")
		checktest.Equal(t, "Starts", c.Starts, 1)
		at := path + "/code/contexts/" + c.ID
		r := run(t, object{"code": "echo $A; B=2; false", "context_id": c.ID})
		checktest.Equal(t, "Stdout", r.Stdout, "1\n")
		checktest.Equal(t, "ExitCode", r.ExitCode, 1)
		checktest.Equal(t, "Status", r.Status, "ok")
		checktest.Equal(t, "Language", r.Language, "bash")
		want[v1.Problem](h, 409, "POST", at+"/interrupt", nil)
		if got := want[v1.Context](h, 200, "POST", at+"/restart", nil); got.Starts != 2 || got.Executions != 0 {
			t.Errorf("got %+v", got)
		}
		if r := run(t, object{"code": "echo $A$B", "context_id": c.ID}); r.Stdout != "1\n" {
			t.Errorf("got %+v", r)
		}
		if got := want[v1.Context](h, 200, "GET", at, nil); got.Executions != 1 {
			t.Errorf("got %+v", got)
		}
		if all := want[v1.ContextList](h, 200, "GET", path+"/code/contexts", nil); len(all.Items) != 2 || !all.Items[0].Default {
			t.Errorf("got %+v", all)
		}
		want[object](h, 204, "DELETE", at, nil)
		want[v1.Problem](h, 404, "GET", at, nil)
	})
	t.Run("IsInTheActivity", func(t *testing.T) {
		page := want[v1.EventPage](h, 200, "GET", path+"/activity?type=code&limit=1", nil)
		if ev := page.Items[0]; ev.Type != "code" || ev.Language != "bash" || ev.ContextID == "" || ev.Command != "echo $A$B" || ev.Status != "exited" {
			t.Errorf("got %+v", ev)
		}
	})
}
