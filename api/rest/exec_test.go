// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/checktest"
)

func TestExec(t *testing.T) {
	t.Parallel()
	h := open(t)
	path := "/api/v1/sandboxes/" + h.create().ID
	run := func(t *testing.T, body object) v1.ExecResult {
		t.Helper()
		return want[v1.ExecResult](h, 200, "POST", path+"/exec", body)
	}
	t.Run("TheOlderServicesShapeHolds", func(t *testing.T) {
		r := want[object](h, 200, "POST", path+"/exec", object{"command": "echo out; echo err >&2", "timeout_seconds": 300})
		if r["exit_code"] != 0.0 || r["stdout"] != "out\n" || r["stderr"] != "err\n" {
			t.Errorf("got %v", r)
		}
		if _, ok := r["duration_ms"].(float64); !ok {
			t.Errorf("duration_ms: got %v", r["duration_ms"])
		}
		if _, ok := r["files_changed"].([]any); !ok {
			t.Errorf("files_changed: got %v, want a list", r["files_changed"])
		}
	})
	t.Run("AFailingCommandIsAResult", func(t *testing.T) {
		if r := run(t, object{"command": "exit 7"}); *r.ExitCode != 7 || r.Status != "exited" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("SoIsAProgramThatIsNone", func(t *testing.T) {
		if r := run(t, object{"argv": []string{"/nosuch"}}); *r.ExitCode != 127 || !strings.Contains(r.Stderr, "/nosuch") {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("ATimeoutIsAResult", func(t *testing.T) {
		r := run(t, object{"command": "sleep 600", "timeout_seconds": 0.2})
		checktest.Equal(t, "ExitCode", *r.ExitCode, 137)
		checktest.Equal(t, "TimedOut", r.TimedOut, true)
		checktest.Equal(t, "Cause", r.Cause, "timeout")
		checktest.Equal(t, "Signal", r.Signal, "SIGKILL")
	})
	t.Run("ArgvEnvCwdAndStdin", func(t *testing.T) {
		r := run(t, object{"argv": []string{"sh", "-c", "cat; echo $A; basename $PWD"}, "env": object{"A": "1"}, "stdin": "in\n", "cwd": "/tmp"})
		if r.Stdout != "in\n1\ntmp\n" {
			t.Errorf("got %q", r.Stdout)
		}
	})
	t.Run("BytesThatAreNoTextAreLossless", func(t *testing.T) {
		data := []byte{0, 0xff, 0xfe, 'a'}
		r := run(t, object{"command": "cat", "stdin_base64": base64.StdEncoding.EncodeToString(data)})
		got, err := base64.StdEncoding.DecodeString(r.StdoutBase64)
		if err != nil || !bytes.Equal(got, data) || !strings.HasSuffix(r.Stdout, "\uFFFDa") {
			t.Errorf("got %q and %q, want %q", r.Stdout, r.StdoutBase64, data)
		}
		if r := run(t, object{"command": "printf 'ä<&>'"}); r.Stdout != "ä<&>" || r.StdoutBase64 != "" {
			t.Errorf("text: got %+v", r)
		}
	})
	t.Run("WhatIsCutThroughACharacterIsStillText", func(t *testing.T) {
		r := run(t, object{"command": "printf 'aä'", "max_output_bytes": 2})
		checktest.Equal(t, "Stdout", r.Stdout, "a")
		checktest.Equal(t, "StdoutBase64", r.StdoutBase64, "")
		checktest.Equal(t, "StdoutTruncated", r.StdoutTruncated, true)
		checktest.Equal(t, "StdoutBytes", r.StdoutBytes, 3)
	})
	t.Run("WaitingHasAnEnd", func(t *testing.T) {
		r := want[v1.ExecResult](h, 202, "POST", path+"/exec", object{"command": "sleep 600", "wait_seconds": 0})
		checktest.Equal(t, "Status", r.Status, "running")
		checktest.Absent(t, "ExitCode", r.ExitCode)
		checktest.Some(t, "ProcessID", r.ProcessID)
		if p := want[v1.Process](h, 200, "GET", path+"/processes/"+r.ProcessID, nil); p.Status != "running" || p.Command != "sleep 600" {
			t.Errorf("got %+v", p)
		}
		if a := h.do("DELETE", path+"/processes/"+r.ProcessID, nil); a.StatusCode != 204 {
			t.Errorf("kill: got %d %s", a.StatusCode, a.body)
		}
		if p := want[v1.Process](h, 200, "GET", path+"/processes/"+r.ProcessID, nil); p.Status != "exited" || p.Cause != "killed" || *p.ExitCode != 137 {
			t.Errorf("got %+v", p)
		}
		if l := want[v1.ProcessList](h, 200, "GET", path+"/processes", nil); len(l.Items) == 0 {
			t.Error("the list is empty")
		}
		want[v1.Problem](h, 404, "GET", path+"/processes/nosuchprocess000", nil)
	})
	t.Run("ItsInputIsStreamed", func(t *testing.T) {
		r := want[v1.ExecResult](h, 202, "POST", path+"/exec", object{"command": "cat; exit 3", "stream_stdin": true, "wait_seconds": 0})
		in := path + "/processes/" + r.ProcessID + "/stdin"
		want[v1.ProcessInput](h, 200, "POST", in, []byte("one "))
		want[v1.ProcessInput](h, 200, "POST", in+"?close=true", []byte("two"))
		if p := want[v1.Process](h, 200, "GET", path+"/processes/"+r.ProcessID+"/wait", nil); p.ExitCode == nil || *p.ExitCode != 3 || p.StdoutBytes != 7 {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("ActivityTellsOfIt", func(t *testing.T) {
		p := want[v1.EventPage](h, 200, "GET", path+"/activity?type=exec&limit=200&sort_order=asc", nil)
		if len(p.Items) < 5 || p.Items[0].Via != "rest" || *p.Items[0].ExitCode != 0 || p.Items[1].Command != "exit 7" {
			t.Errorf("got %+v", p.Items)
		}
	})
	t.Run("AStoppedSandboxRefuses", func(t *testing.T) {
		want[v1.Sandbox](h, 200, "POST", path+"/stop", nil)
		p := want[v1.Problem](h, 409, "POST", path+"/exec", object{"command": "true"})
		if p.Code != "state" || !strings.Contains(p.Remedy+p.Detail, "start") {
			t.Errorf("got %+v, want state naming start", p)
		}
	})
}

// stream opens a streamed exec; its events are lines up to an empty one.
func (h *house) stream(path, body string) (*http.Response, *bufio.Scanner) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), "POST", h.url+path, strings.NewReader(body))
	must(h.t, err)
	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := plain.Do(req)
	must(h.t, err)
	h.t.Cleanup(func() { _ = resp.Body.Close() })
	sc := bufio.NewScanner(resp.Body)
	sc.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.Index(data, []byte("\n\n")); i >= 0 {
			return i + 2, data[:i], nil
		}
		return 0, nil, nil
	})
	return resp, sc
}

func TestExecStream(t *testing.T) {
	t.Parallel()
	t.Run("AFrameComesWhenItIsWritten", func(t *testing.T) {
		h := open(t)
		path := "/v1/sandboxes/" + h.create().ID
		resp, events := h.stream(path+"/exec", `{"command":"echo one; read x < /dev/null; while [ ! -e go ]; do sleep 0.01; done; echo two >&2"}`)
		if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("headers: got %v", resp.Header)
		}
		next := func() string {
			for events.Scan() {
				if !strings.HasPrefix(events.Text(), ":") {
					return events.Text()
				}
			}
			t.Fatalf("the stream ended: %v", events.Err())
			return ""
		}
		if got, id := next(), resp.Header.Get("Sandpit-Process-Id"); got != `event: start`+"\n"+`data: {"process_id":"`+id+`"}` || id == "" {
			t.Errorf("the id: got %q and the header %q", got, id)
		}
		// The command goes on only after the first frame has been read here.
		if got := next(); !strings.HasPrefix(got, "event: stdout\nid: 1\ndata: ") || !strings.Contains(got, `"one\n"`) {
			t.Errorf("first: got %q", got)
		}
		if a := h.do("PUT", path+"/files/go", []byte("x")); a.StatusCode != 204 {
			t.Fatalf("got %d %s", a.StatusCode, a.body)
		}
		if got := next(); !strings.HasPrefix(got, "event: stderr\nid: 2\ndata: ") || !strings.Contains(got, `"two\n"`) {
			t.Errorf("second: got %q", got)
		}
		if got := next(); !strings.HasPrefix(got, "event: exit\ndata: ") || !strings.Contains(got, `"exit_code":0`) {
			t.Errorf("last: got %q", got)
		}
		if events.Scan() {
			t.Errorf("after the last: got %q", events.Text())
		}
	})
	t.Run("BytesThatAreNoTextComeOnceWhereThatIsAskedFor", func(t *testing.T) {
		h := open(t)
		path := "/v1/sandboxes/" + h.create().ID
		zeros, raw, plain := `{"command":"printf 'a\\000b'"}`, `{"command":"printf 'a\\377b'"}`, `{"command":"printf 'ä\\t\\n'"}`
		for _, c := range []struct{ accept, body, data string }{
			{"text/event-stream", zeros, `{"data":"a\u0000b","at":`},
			{"text/event-stream", raw, `{"data":"a�b","data_base64":"Yf9i","at":`},
			{"text/event-stream;data=exact", zeros, `{"data":"","data_base64":"YQBi","at":`},
			{"application/json, text/event-stream; data=exact", raw, `{"data":"","data_base64":"Yf9i","at":`},
			{"text/event-stream;data=exact", plain, `{"data":"ä\t\n","at":`},
		} {
			a := h.do("POST", path+"/exec", []byte(c.body), "Accept", c.accept, "Content-Type", "application/json")
			if a.StatusCode != 200 || !strings.Contains(string(a.body), "event: stdout\nid: 1\ndata: "+c.data) {
				t.Errorf("%s, %s: got %d %s", c.accept, c.body, a.StatusCode, a.body)
			}
		}
	})
	t.Run("WhatFailsBeforeIsAnAnswerLikeAnyOther", func(t *testing.T) {
		h := open(t)
		resp, _ := h.stream("/v1/sandboxes/nosuch/exec", `{"command":"true"}`)
		if resp.StatusCode != 404 || resp.Header.Get("Content-Type") != v1.ProblemType {
			t.Errorf("got %d %v", resp.StatusCode, resp.Header)
		}
	})
	t.Run("AQuietOneIsKeptAlive", func(t *testing.T) {
		h := open(t, func(o *rest.Options) { o.Heartbeat = 5 * time.Millisecond })
		path := "/v1/sandboxes/" + h.create().ID
		_, events := h.stream(path+"/exec", `{"command":"while [ ! -e go ]; do sleep 0.01; done"}`)
		for comments := 0; comments < 3; {
			switch {
			case !events.Scan():
				t.Fatal(events.Err())
			case strings.HasPrefix(events.Text(), ":"):
				comments++
			case !strings.HasPrefix(events.Text(), "event: start"):
				t.Fatalf("got %q, want a comment", events.Text())
			}
		}
		if a := h.do("PUT", path+"/files/go", []byte("x")); a.StatusCode != 204 {
			t.Fatalf("got %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("TheServersEndIsTold", func(t *testing.T) {
		h := open(t)
		path := "/v1/sandboxes/" + h.create().ID
		_, events := h.stream(path+"/exec", `{"command":"echo up; sleep 600"}`)
		next := func() bool { // passes over what a stream says while a busy machine takes its time
			for events.Scan() {
				if !strings.HasPrefix(events.Text(), ":") {
					return true
				}
			}
			return false
		}
		for range 2 { // its start and its first word
			if !next() {
				t.Fatal(events.Err())
			}
		}
		h.api.Close()
		if !next() || !strings.HasPrefix(events.Text(), "event: error\n") || !strings.Contains(events.Text(), `"unavailable"`) {
			t.Errorf("got %q", events.Text())
		}
	})
}
