// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
)

// stream reads server-sent events as they come.
type stream struct {
	t      testing.TB
	resp   *http.Response
	lines  *bufio.Scanner
	beats  int
	cancel context.CancelFunc
}

func (h *house) listen(path string) *stream {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, "GET", h.url+path, nil)
	must(h.t, err)
	req.Header.Set("Authorization", "Bearer "+h.token)
	resp, err := plain.Do(req)
	must(h.t, err)
	h.t.Cleanup(func() { cancel(); _ = resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		h.t.Fatalf("%s: got %d %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return &stream{t: h.t, resp: resp, lines: bufio.NewScanner(resp.Body), cancel: cancel}
}

// next returns the next event's fields; none at the end.
func (s *stream) next() map[string]string {
	s.t.Helper()
	ev := map[string]string{}
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch {
		case strings.HasPrefix(s.lines.Text(), ":"):
			s.beats++
		case name != "":
			ev[name] = value
		case len(ev) > 0:
			return ev
		}
	}
	return nil
}

func (s *stream) change() (e v1.WatchEvent) {
	s.t.Helper()
	ev := s.next()
	if err := json.Unmarshal([]byte(ev["data"]), &e); err != nil {
		s.t.Fatalf("got %q: %v", ev, err)
	}
	if ev["event"] != e.Type || ev["id"] != fmt.Sprint(e.Seq) || e.Time.IsZero() {
		s.t.Errorf("got %q", ev)
	}
	return e
}

func TestWatch(t *testing.T) {
	t.Parallel()
	t.Run("TellsWhatChanges", func(t *testing.T) {
		h := open(t)
		for _, base := range []string{"/v1", "/api/v1"} {
			box := base + "/sandboxes/" + h.create().ID
			h.do("POST", box+"/mkdir", object{"path": "src/deep"})
			w := h.listen(box + "/watch?path=src&recursive=true")
			if ev := w.next(); ev["event"] != "watching" || ev["data"] != `{"path":"src","recursive":true}` {
				t.Errorf("first: got %q", ev)
			}
			h.do("POST", box+"/mkdir", object{"path": "elsewhere"})
			h.do("POST", box+"/mkdir", object{"path": "src/deep/er"})
			h.do("POST", box+"/move", object{"from": "src/deep/er", "to": "src/er"})
			h.do("DELETE", box+"/files?path=src/er", nil)
			for n, want := range []v1.WatchEvent{
				{Type: "created", Path: "/workspace/src/deep/er", IsDir: true},
				{Type: "renamed", Path: "/workspace/src/er", From: "/workspace/src/deep/er", IsDir: true},
				{Type: "deleted", Path: "/workspace/src/er", IsDir: true},
			} {
				got := w.change()
				for got.Type == "attributes" { // a new directory's mode is set after it is made
					n--
					got = w.change()
				}
				got.Time, want.Seq = time.Time{}, got.Seq
				if got != want || got.Seq < int64(n+1) {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
			h.do("DELETE", box+"/files?path=src&recursive=true", nil)
			for ev := w.next(); ; ev = w.next() {
				if ev == nil {
					t.Fatal("it ended without a word")
				}
				if ev["event"] == "end" {
					if !strings.HasPrefix(ev["data"], `{"reason":"removed",`) {
						t.Errorf("end: got %q", ev)
					}
					break
				}
			}
			if ev := w.next(); ev != nil {
				t.Errorf("after the end: %q", ev)
			}
		}
	})
	t.Run("AFileNamedWatchIsStillAFile", func(t *testing.T) {
		h := open(t)
		box := "/v1/sandboxes/" + h.create().ID
		h.do("PUT", box+"/files/watch", []byte("x"))
		if a := h.do("GET", box+"/files/watch", nil); a.StatusCode != 200 || string(a.body) != "x" {
			t.Errorf("got %d %q", a.StatusCode, a.body)
		}
	})
	t.Run("BeatsAndEndsWithTheSandbox", func(t *testing.T) {
		h := open(t, func(o *rest.Options) { o.Heartbeat = 5 * time.Millisecond })
		box := "/v1/sandboxes/" + h.create().ID
		w := h.listen(box + "/watch")
		w.next()
		for w.beats < 3 && w.lines.Scan() {
			if strings.HasPrefix(w.lines.Text(), ":") {
				w.beats++
			}
		}
		h.do("POST", box+"/stop", nil)
		if ev := w.next(); ev["event"] != "end" || !strings.HasPrefix(ev["data"], `{"reason":"stopped",`) {
			t.Errorf("got %q", ev)
		}
	})
	t.Run("EndsWithTheServer", func(t *testing.T) {
		h := open(t)
		w := h.listen("/v1/sandboxes/" + h.create().ID + "/watch")
		w.next()
		h.api.Close()
		if ev := w.next(); ev["event"] != "error" || !strings.Contains(ev["data"], `"unavailable"`) {
			t.Errorf("got %q", ev)
		}
	})
	t.Run("AClientThatGoesAwayLeavesNothing", func(t *testing.T) {
		h := open(t)
		box := "/v1/sandboxes/" + h.create().ID
		for range 50 { // more than the watches that a host gives one sandbox
			w := h.listen(box + "/watch?recursive=true")
			w.next()
			w.cancel()
		}
		w := h.listen(box + "/watch")
		if ev := w.next(); ev["event"] != "watching" {
			t.Errorf("got %q", ev)
		}
	})
	t.Run("IsRefused", func(t *testing.T) {
		h := open(t)
		id := h.create().ID
		box := "/v1/sandboxes/" + id
		want[v1.ExecResult](h, 200, "POST", box+"/exec", object{"command": "echo > file; mkdir real; ln -s real link"})
		for query, status := range map[string]int{
			"?path=none": 404, "?path=file": 422, "?path=link": 422, "?path=../x": 422, "?path=": 422, "?path=%00": 422, "?path=%ff": 422,
			"?path=" + url.QueryEscape("/workspace/../../../../root/none"): 404, "?user=nobody": 422, "?recursive=maybe": 422, "?depth=2": 422,
			"?path=" + strings.Repeat("x", 300): 422,
		} {
			if p := want[v1.Problem](h, status, "GET", box+"/watch"+query, nil); p.Detail == "" {
				t.Errorf("%s: got %+v", query, p)
			}
		}
		want[v1.Problem](h, 404, "GET", "/v1/sandboxes/nosuch/watch", nil)
		want[v1.Problem](h.as("other", access.SandboxesRead), 404, "GET", box+"/watch", nil)
		want[v1.Problem](h.as(access.DefaultProject, access.SandboxesWrite), 403, "GET", box+"/watch", nil)
		h.do("POST", box+"/stop", nil)
		want[v1.Problem](h, 409, "GET", box+"/watch", nil)
	})
}
