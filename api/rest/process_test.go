// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// process starts one that has to be started, and gives its path.
func (h *house) process(box string, body object) (v1.Process, string) {
	h.t.Helper()
	p := want[v1.Process](h, 201, "POST", box+"/processes", body)
	return p, box + "/processes/" + p.ProcessID
}

// follow reads a followed process to its last event.
func (h *house) follow(path string, headers ...string) (events []string) {
	h.t.Helper()
	a := h.do("GET", path, nil, headers...)
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" {
		h.t.Fatalf("%s: got %d %s", path, a.StatusCode, a.body)
	}
	for ev := range strings.SplitSeq(strings.TrimSuffix(string(a.body), "\n\n"), "\n\n") {
		if !strings.HasPrefix(ev, ":") {
			events = append(events, ev)
		}
	}
	return events
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, base := range []string{"/v1", "/api/v1"} {
		box := base + "/sandboxes/" + h.create().ID
		t.Run("StartWriteWaitAndRead"+base, func(t *testing.T) {
			p, path := h.process(box, object{"command": "cat; sleep 0.2; echo err >&2; exit 3", "stream_stdin": true})
			if p.Status != "running" || p.ExitCode != nil || p.PID == 0 {
				t.Errorf("got %+v", p)
			}
			in := want[v1.ProcessInput](h, 200, "POST", path+"/stdin?offset=0", []byte("\x00\xffab\n"))
			if in != (v1.ProcessInput{BytesTaken: 5, TotalBytes: 5}) {
				t.Errorf("stdin: got %+v", in)
			}
			if in := want[v1.ProcessInput](h, 200, "POST", path+"/stdin?offset=0&close=true", []byte("\x00\xffab\n")); in.TotalBytes != 5 || !in.Closed {
				t.Errorf("the same again: got %+v", in)
			}
			done := want[v1.Process](h, 200, "GET", path+"/wait?timeout=60", nil)
			if done.Status != "exited" || *done.ExitCode != 3 || done.StdoutBytes != 5 || done.LastSeq != 0 && done.LastSeq < 2 {
				t.Errorf("wait: got %+v", done)
			}
			for query, text := range map[string]string{"": "\x00\xffab\nerr\n", "?stream=stdout": "\x00\xffab\n", "?stream=stderr&follow=true": "err\n", "?cursor=1&stream=stdout": ""} {
				if a := h.do("GET", path+"/logs"+query, nil); a.StatusCode != 200 || string(a.body) != text || a.Header.Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("logs%s: got %d %q", query, a.StatusCode, a.body)
				}
			}
			all := h.follow(path + "/output")
			if len(all) != 3 || !strings.Contains(all[0], base64.StdEncoding.EncodeToString([]byte("\x00\xffab\n"))) || !strings.HasPrefix(all[2], "event: exit\n") {
				t.Errorf("output: got %q", all)
			}
			if rest := h.follow(path + "/output?cursor=1"); len(rest) != 2 || rest[0] != all[1] {
				t.Errorf("after 1: got %q", rest)
			}
			if rest := h.follow(path+"/output", "Last-Event-ID", "2"); len(rest) != 1 || rest[0] != all[2] {
				t.Errorf("after 2: got %q", rest)
			}
		})
	}
	box := "/v1/sandboxes/" + h.create().ID
	_, sleeper := h.process(box, object{"command": "echo up; exec sleep 600"})
	t.Run("WhatRunsCanBeReadWithoutWaiting", func(t *testing.T) {
		events := h.follow(sleeper + "/output?follow=false")
		for len(events) < 2 { // it may not have said its word yet
			events = h.follow(sleeper + "/output?follow=false")
		}
		if events[1] != "event: end\ndata: {\"cursor\":1}" {
			t.Errorf("got %q", events)
		}
		if p := want[v1.Process](h, 202, "GET", sleeper+"/wait?timeout=0.01", nil); p.Status != "running" {
			t.Errorf("wait: got %+v", p)
		}
		if a := h.do("HEAD", sleeper+"/output", nil); a.StatusCode != 200 {
			t.Errorf("HEAD: got %d", a.StatusCode)
		}
	})
	t.Run("WhatMakesNoSenseHasANamedOutcome", func(t *testing.T) {
		for _, c := range []struct {
			status       int
			method, path string
			body         any
			code, names  string
		}{
			{422, "GET", sleeper + "/output?cursor=99", nil, "invalid", "cursor"},
			{422, "GET", sleeper + "/output?cursor=-1", nil, "invalid", "cursor"},
			{422, "GET", sleeper + "/logs?cursor=99", nil, "invalid", "cursor"},
			{422, "GET", sleeper + "/logs?stream=both", nil, "invalid", "stream"},
			{422, "GET", sleeper + "/wait?timeout=-1", nil, "invalid", "timeout"},
			{422, "GET", sleeper + "/wait?timeout=NaN", nil, "invalid", "timeout"},
			{422, "POST", sleeper + "/signal", object{"signal": "SIGNOSUCH"}, "invalid", "signal"},
			{422, "POST", sleeper + "/resize", object{"cols": 0, "rows": 0}, "invalid", "cols"},
			{409, "POST", sleeper + "/resize", object{"cols": 80, "rows": 24}, "state", "terminal"},
			{409, "POST", sleeper + "/stdin", []byte("x"), "state", "standard input"},
			{422, "POST", sleeper + "/stdin?offset=-1", []byte("x"), "invalid", "offset"},
			{413, "POST", sleeper + "/stdin", bytes.Repeat([]byte("x"), 1<<20+1), "too_large", ""},
			{422, "POST", box + "/processes", object{}, "invalid", "command"},
			{422, "POST", box + "/processes", object{"command": "x", "rows": 5}, "invalid", "rows"},
			{422, "POST", box + "/processes", object{"command": "x", "tty": true, "rows": 0}, "invalid", "rows"},
			{422, "POST", box + "/processes", object{"command": "x", "stdin": "a", "stream_stdin": true}, "invalid", "stdin"},
			{422, "GET", box + "/processes?cursor=zzz", nil, "invalid", "cursor"},
			{422, "GET", box + "/processes?limit=0", nil, "invalid", "limit"},
			{404, "GET", box + "/processes/nosuchprocess000/output", nil, "not_found", ""},
			{404, "POST", box + "/processes/..%2f..%2fetc/signal", object{"signal": "TERM"}, "not_found", ""},
		} {
			p := want[v1.Problem](h, c.status, c.method, c.path, c.body)
			if p.Code != c.code || !strings.Contains(fmt.Sprint(p.Detail, p.Errors), c.names) {
				t.Errorf("%s %s: got %+v", c.method, c.path, p)
			}
		}
	})
	t.Run("SignalsAndKills", func(t *testing.T) {
		if a := h.do("POST", sleeper+"/signal", object{"signal": "term"}); a.StatusCode != 204 {
			t.Fatalf("got %d %s", a.StatusCode, a.body)
		}
		p := want[v1.Process](h, 200, "GET", sleeper+"/wait?timeout=60", nil)
		if p.Signal != "SIGTERM" || *p.ExitCode != 143 {
			t.Errorf("got %+v", p)
		}
		if p := want[v1.Problem](h, 409, "POST", sleeper+"/signal", object{"signal": "term"}); p.Code != "state" {
			t.Errorf("a dead one: got %+v", p)
		}
		if a := h.do("POST", sleeper+"/kill", nil); a.StatusCode != 204 {
			t.Errorf("killing a dead one: got %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("AreListedByPages", func(t *testing.T) {
		for range 3 {
			h.process(box, object{"command": "exec sleep 600"})
		}
		seen, cursor := 0, ""
		for {
			page := want[v1.ProcessList](h, 200, "GET", box+"/processes?limit=2&sort_order=desc&cursor="+cursor, nil)
			seen += len(page.Items)
			if page.NextCursor == nil {
				break
			}
			cursor = *page.NextCursor
		}
		if seen != 4 {
			t.Errorf("got %d, want 4", seen)
		}
		if page := want[v1.ProcessList](h, 200, "GET", box+"/processes?status=running", nil); len(page.Items) != 3 {
			t.Errorf("running: got %d, want 3", len(page.Items))
		}
	})
	t.Run("AProgramThatDoesNotReadTakesAPart", func(t *testing.T) {
		_, path := h.process(box, object{"command": "exec sleep 600", "stream_stdin": true})
		in := want[v1.ProcessInput](h, 202, "POST", path+"/stdin?wait_seconds=0.05", bytes.Repeat([]byte("x"), 1<<20))
		if in.BytesTaken >= 1<<20 || int64(in.BytesTaken) != in.TotalBytes {
			t.Errorf("got %+v", in)
		}
	})
	t.Run("AllAreKilledInOne", func(t *testing.T) {
		own := "/v1/sandboxes/" + h.create().ID
		one, _ := h.process(own, object{"command": "sleep 600"})
		h.process(own, object{"command": "trap '' TERM; while :; do sleep 600; done"})
		for range 2 { // the second finds nothing, which is fine
			if a := h.do("DELETE", own+"/processes", nil); a.StatusCode != 204 {
				t.Fatalf("got %d %s", a.StatusCode, a.body)
			}
		}
		if left := want[v1.ProcessList](h, 200, "GET", own+"/processes?status=running", nil); len(left.Items) != 0 {
			t.Errorf("%d run", len(left.Items))
		}
		if p := want[v1.Process](h, 200, "GET", own+"/processes/"+one.ProcessID+"/wait", nil); p.Cause != "killed" {
			t.Errorf("got %+v", p)
		}
		if a := h.as("default", "sandboxes:read").do("DELETE", own+"/processes", nil); a.StatusCode != 403 {
			t.Errorf("a reader: got %d %s", a.StatusCode, a.body)
		}
		if a := h.do("DELETE", "/v1/sandboxes/nosuch/processes", nil); a.StatusCode != 404 {
			t.Errorf("none: got %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("NeedTheirScope", func(t *testing.T) {
		reader := h.as("default", "sandboxes:read")
		_, path := h.process(box, object{"command": "cat", "stream_stdin": true})
		for _, verb := range []string{"/signal", "/stdin", "/resize", "/kill"} {
			var body any
			switch verb {
			case "/signal":
				body = object{"signal": "TERM"}
			case "/resize":
				body = object{"cols": 1, "rows": 1}
			}
			if a := reader.do("POST", path+verb, body); a.StatusCode != 403 {
				t.Errorf("%s: got %d %s", verb, a.StatusCode, a.body)
			}
		}
		if a := reader.do("GET", path+"/output?follow=false", nil); a.StatusCode != 200 {
			t.Errorf("reading: got %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("TheServersEndIsTold", func(t *testing.T) {
		h := open(t)
		_, path := h.process("/v1/sandboxes/"+h.create().ID, object{"command": "echo up; exec sleep 600"})
		req, err := http.NewRequestWithContext(t.Context(), "GET", h.url+path+"/output", nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+h.token)
		resp, err := plain.Do(req)
		must(t, err)
		defer resp.Body.Close()
		first := make([]byte, len("event: stdout"))
		_, err = io.ReadFull(resp.Body, first)
		must(t, err)
		h.api.Close()
		rest, err := io.ReadAll(resp.Body)
		must(t, err)
		if _, last, _ := strings.Cut(string(rest), "event: error\n"); !strings.Contains(last, `"unavailable"`) {
			t.Errorf("got %q", rest)
		}
	})
}

// pickyProcesses takes nothing of the first input at first, and then refuses it. Of any
// other it takes all.
type pickyProcesses struct {
	service.Processes
	tries []time.Time
}

func (e *pickyProcesses) WriteInput(_ context.Context, _ access.Caller, _, _ string, r engine.InputRequest) (sandbox.InputTaken, error) {
	e.tries = append(e.tries, time.Now())
	switch len(e.tries) {
	case 1:
		return sandbox.InputTaken{}, nil
	case 2:
		return sandbox.InputTaken{}, fault.New(fault.Timeout, "not now")
	}
	return sandbox.InputTaken{Bytes: len(r.Data), Closed: r.End}, nil
}

// socket opens the WebSocket of a followed process.
func (h *house) socket(path string) *websocket.Conn {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	h.t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, h.url+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
	must(h.t, err)
	conn.SetReadLimit(1 << 20)
	h.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

// receive reads one message: a frame's stream, number and bytes, or a control.
func receive(t *testing.T, conn *websocket.Conn) (stream byte, seq int64, data []byte, m v1.ProcessControl) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	kind, b, err := conn.Read(ctx)
	must(t, err)
	if kind == websocket.MessageText {
		must(t, json.Unmarshal(b, &m))
		return 0, 0, nil, m
	}
	if len(b) <= v1.OutputHeader {
		t.Fatalf("a frame of %d bytes", len(b))
	}
	at := time.Unix(0, int64(binary.BigEndian.Uint64(b[9:])))
	if since := time.Since(at); since < 0 || since > time.Hour {
		t.Errorf("the frame's time is %v", at)
	}
	return b[0], int64(binary.BigEndian.Uint64(b[1:])), b[v1.OutputHeader:], m
}

func TestProcessSocket(t *testing.T) {
	t.Parallel()
	h := open(t)
	box := "/v1/sandboxes/" + h.create().ID
	put := func(t *testing.T, conn *websocket.Conn, kind websocket.MessageType, text string) {
		t.Helper()
		must(t, conn.Write(t.Context(), kind, []byte(text)))
	}
	t.Run("CarriesBytesBothWaysAndControl", func(t *testing.T) {
		_, path := h.process(box, object{"command": "cat; echo over >&2; exit 4", "stream_stdin": true})
		conn := h.socket(path + "/output")
		put(t, conn, websocket.MessageBinary, "a\x00\xff\n")
		if stream, seq, data, _ := receive(t, conn); stream != 1 || seq != 1 || string(data) != "a\x00\xff\n" {
			t.Errorf("got %d %d %q", stream, seq, data)
		}
		put(t, conn, websocket.MessageText, `{"resize":{"cols":0,"rows":0}}`)
		if _, _, _, m := receive(t, conn); m.Refused == nil || m.Refused.Code != "invalid" {
			t.Errorf("0 by 0: got %+v", m)
		}
		put(t, conn, websocket.MessageText, `{"signal":"nosuch"}`)
		if _, _, _, m := receive(t, conn); m.Refused == nil || m.Refused.Code != "invalid" {
			t.Errorf("a signal that is none: got %+v", m)
		}
		put(t, conn, websocket.MessageText, `{"close_stdin":true}`)
		if stream, seq, data, _ := receive(t, conn); stream != 2 || seq != 2 || string(data) != "over\n" {
			t.Errorf("got %d %d %q", stream, seq, data)
		}
		if _, _, _, m := receive(t, conn); m.Exit == nil || *m.Exit.ExitCode != 4 || m.Exit.LastSeq != 2 {
			t.Errorf("got %+v", m)
		}
		again := h.socket(path + "/output?cursor=1")
		if _, seq, _, _ := receive(t, again); seq != 2 {
			t.Errorf("after 1: got %d", seq)
		}
	})
	t.Run("SignalsPassInputThatNobodyReads", func(t *testing.T) {
		_, path := h.process(box, object{"command": "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done", "stream_stdin": true})
		conn := h.socket(path + "/output")
		receive(t, conn) // its trap is set
		put(t, conn, websocket.MessageBinary, strings.Repeat("x", 1<<20))
		put(t, conn, websocket.MessageText, `{"signal":"TERM"}`)
		for {
			_, _, _, m := receive(t, conn)
			if m.Refused != nil { // what was left of the input
				continue
			}
			if m.Exit == nil || *m.Exit.ExitCode != 9 {
				t.Errorf("got %+v", m)
			}
			return
		}
	})
	t.Run("InputThatNobodyReadsIsNotCutOff", func(t *testing.T) {
		h := open(t, func(o *rest.Options) { o.Heartbeat = 10 * time.Millisecond })
		_, path := h.process("/v1/sandboxes/"+h.create().ID, object{"command": "echo up; while [ ! -e go ]; do sleep 0.01; done; wc -c", "stream_stdin": true})
		conn := h.socket(path + "/output")
		receive(t, conn)
		const messages = 40
		sent := make(chan error, 1)
		go func() { // more than waits for the program: the socket is not read, nor any pong
			for range messages {
				if err := conn.Write(t.Context(), websocket.MessageBinary, make([]byte, 1<<19)); err != nil {
					sent <- err
					return
				}
			}
			sent <- conn.Write(t.Context(), websocket.MessageText, []byte(`{"close_stdin":true}`))
		}()
		time.Sleep(1200 * time.Millisecond) // several heartbeats
		if n := h.do("PUT", path[:strings.Index(path, "/processes")]+"/files/go", []byte("x")).StatusCode; n != 204 {
			t.Fatal("go:", n)
		}
		if _, _, data, _ := receive(t, conn); strings.TrimSpace(string(data)) != fmt.Sprint(messages<<19) {
			t.Errorf("got %q", data)
		}
		must(t, <-sent)
	})
	t.Run("InputIsTakenInOrderOrNotAtAll", func(t *testing.T) {
		picky := new(pickyProcesses)
		h := open(t, func(o *rest.Options) { picky.Processes, o.Services.Processes = o.Services.Processes, picky })
		_, path := h.process("/v1/sandboxes/"+h.create().ID, object{"command": "cat", "stream_stdin": true})
		conn := h.socket(path + "/output")
		for _, text := range []string{"one", "two"} {
			put(t, conn, websocket.MessageBinary, text)
		}
		put(t, conn, websocket.MessageText, `{"close_stdin":true}`)
		for range 3 {
			if _, _, data, m := receive(t, conn); m.Refused == nil || m.Refused.Code != "timeout" {
				t.Errorf("got %q %+v", data, m)
			}
		}
		if len(picky.tries) != 2 || picky.tries[1].Sub(picky.tries[0]) < time.Second {
			t.Errorf("tried at %v; want the first message twice, a second apart, and no other", picky.tries)
		}
	})
	t.Run("EndsWithoutWaitingIfAsked", func(t *testing.T) {
		_, path := h.process(box, object{"command": "exec sleep 600"})
		if _, _, _, m := receive(t, h.socket(path+"/output?follow=false")); m.End == nil || m.End.Cursor != 0 {
			t.Errorf("got %+v", m)
		}
	})
	t.Run("NonsenseEndsItAndNotTheProcess", func(t *testing.T) {
		_, path := h.process(box, object{"command": "exec sleep 600"})
		conn := h.socket(path + "/output")
		put(t, conn, websocket.MessageText, `{"signal":`)
		if _, _, _, m := receive(t, conn); m.Error == nil || m.Error.Code != "malformed" {
			t.Errorf("got %+v", m)
		}
		if p := want[v1.Process](h, 200, "GET", path, nil); p.Status != "running" {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("TellsTheServersEnd", func(t *testing.T) {
		h := open(t)
		_, path := h.process("/v1/sandboxes/"+h.create().ID, object{"command": "exec sleep 600"})
		conn := h.socket(path + "/output")
		h.api.Close()
		if _, _, _, m := receive(t, conn); m.Error == nil || m.Error.Code != "unavailable" {
			t.Errorf("got %+v", m)
		}
	})
	t.Run("WhatIsWrongBeforeIsAnHTTPAnswer", func(t *testing.T) {
		_, path := h.process(box, object{"command": "true"})
		_, resp, err := websocket.Dial(t.Context(), h.url+path+"/output?cursor=7", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
		if err == nil || resp == nil || resp.StatusCode != 422 {
			t.Errorf("got %v", err)
		}
	})
}
