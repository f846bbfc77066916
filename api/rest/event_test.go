// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/access"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/events"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// change reads the next event of a stream that is a change of a record.
func (s *stream) record() (e v1.ProjectEvent) {
	s.t.Helper()
	ev := s.next()
	must(s.t, json.Unmarshal([]byte(ev["data"]), &e))
	if ev["event"] != e.Type || ev["id"] != e.ID || e.ID == "" {
		s.t.Fatalf("got %v", ev)
	}
	return e
}

func TestEvents(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.listen("/v1/events")
	if ev := s.next(); ev["event"] != v1.EventsBegun || ev["id"] != "0-0" {
		t.Fatalf("got %v", ev)
	}
	box := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "work", "env": object{"TOKEN": "value-of-a-variable"}, "metadata": object{"a": "b event: forged data: x"}})
	made, started := s.record(), s.record()
	if made.Type != "sandbox.created" || started.Type != "sandbox.started" || made.Sandbox().Status != "creating" || *started.Project != "default" || started.Subject != box.ID || started.Via != "rest" || started.Snapshot() != nil {
		t.Errorf("got %+v and %+v", made, started)
	}
	got := want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/work", nil)
	got.Versions, got.ImageNote = nil, ""
	told := *started.Sandbox()
	told.RunSeconds, told.LastActivityAt = got.RunSeconds, got.LastActivityAt // it runs on, and was asked for
	if diff := cmp.Diff(got, told); diff != "" {
		t.Errorf("the record in the event is another: %s", diff)
	}
	want[any](h, 201, "POST", "/v1/volumes", object{"name": "data"})
	if a, b := s.record(), s.record(); a.Type != "volume.created" || b.Type != "volume.ready" || b.Volume().Name != "data" || b.Volume().Users == nil {
		t.Errorf("got %s and %s", a.Object, b.Object)
	}
	tmpl := want[v1.Template](h, 201, "POST", "/v1/templates", object{"name": "web", "env": object{"KEY": "value-of-a-variable"}})
	e := s.record()
	if e.Type != "template.created" || e.Template().ID != tmpl.ID || cmp.Diff(e.Template().Env, map[string]string{"KEY": ""}) != "" {
		t.Errorf("got %s", e.Object)
	}

	t.Run("GoesOnBehindTheLastThatWasSeen", func(t *testing.T) {
		s := h.listen("/v1/events?type=volume.ready,template&last_event_id=" + made.ID)
		if ev := s.next(); ev["event"] != v1.EventsBegun || ev["id"] != made.ID {
			t.Errorf("got %v", ev)
		}
		if a, b := s.record(), s.record(); a.Type != "volume.ready" || b.ID != e.ID {
			t.Errorf("got %v and %v", a, b)
		}
	})
	t.Run("EndsWhereItIsToldTo", func(t *testing.T) {
		a := h.do("GET", "/v1/events?last_event_id=0&follow=false", nil)
		text := string(a.body)
		if n := strings.Count("\n"+text, "\nevent: "); n != 7 || !strings.HasSuffix(text, "event: end\nid: "+e.ID+"\ndata: {\"id\":\""+e.ID+"\"}\n\n") {
			t.Errorf("got %d in %s", n, text)
		}
		if strings.Contains(text, "value-of-a-variable") || strings.Contains(text, "\nevent: forged") {
			t.Errorf("got %s", text)
		}
	})
	t.Run("TellsOfAGap", func(t *testing.T) {
		a := h.do("GET", "/v1/events?follow=false", nil, "Last-Event-ID", "7-another")
		if text := string(a.body); !strings.HasPrefix(text, "event: reset\nid: "+e.ID+"\n") || !strings.Contains(text, `"reason":"unknown_id"`) || strings.Contains(text, "sandbox.") {
			t.Errorf("got %s", text)
		}
	})
	t.Run("IsOfTheCallersProject", func(t *testing.T) {
		bob := h.as("bobs", access.SandboxesRead)
		if a := bob.do("GET", "/v1/events?last_event_id=0&follow=false", nil); a.StatusCode != 200 || strings.Contains(string(a.body), box.ID) {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
		for _, path := range []string{"/v1/events?project=*", "/v1/events?project=default"} {
			if a := bob.do("GET", path, nil); a.StatusCode != 403 {
				t.Errorf("%s: got %d %s", path, a.StatusCode, a.body)
			}
		}
		if a := h.as("bobs", access.SandboxesWrite).do("GET", "/v1/events?follow=false", nil); a.StatusCode != 403 {
			t.Errorf("without the scope: got %d %s", a.StatusCode, a.body)
		}
		if a := h.do("GET", "/v1/events?project=bobs&last_event_id=0&follow=false", nil); a.StatusCode != 200 || strings.Contains(string(a.body), box.ID) {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("RefusesWhatItDoesNotKnow", func(t *testing.T) {
		for path, words := range map[string]string{
			"/v1/events?type=exec":              `"exec" is no type`,
			"/v1/events?type=sandbox.*":         `is no type`,
			"/v1/events?last_event_id=%0Adata:": "is no id of an event",
			"/v1/events?follow=maybe":           "follow",
			"/v1/events?types=sandbox":          "types",
		} {
			if a := h.do("GET", path, nil); a.StatusCode != 422 && a.StatusCode != 400 || !strings.Contains(string(a.body), strings.ReplaceAll(words, `"`, `\"`)) {
				t.Errorf("%s: got %d %s", path, a.StatusCode, a.body)
			}
		}
		if a := h.do("HEAD", "/v1/events", nil); a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("HEAD: got %d %v", a.StatusCode, a.Header)
		}
	})
	t.Run("OneThatReadsNothingHoldsUpNobody", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", h.url+"/v1/events?last_event_id=0", nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+adminToken)
		resp, err := plain.Do(req)
		must(t, err)
		defer resp.Body.Close()
		for range 50 {
			want[any](h, 200, "PATCH", "/v1/sandboxes/work", object{"metadata": object{"long": strings.Repeat("x", 256)}})
		}
		want[any](h, 204, "DELETE", "/v1/sandboxes/work", nil)
		for s.record().Type != "sandbox.deleted" {
		}
	})
}

// followed tells when somebody is followed no longer.
type followed struct {
	service.Events
	ended chan struct{}
}

func (f followed) Follow(ctx context.Context, c access.Caller, q events.Query, to events.Follower) error {
	defer close(f.ended)
	return f.Events.Follow(ctx, c, q, to)
}

// TestWhoTakesNothingIsToldWhyTheStreamEnds: the client's window and the server's buffers are full before it reads. On a busy
// machine any write may take longer than the server waits, the first one, too: the stream ends before any event then.
func TestWhoTakesNothingIsToldWhyTheStreamEnds(t *testing.T) {
	t.Parallel()
	h := open(t)
	o := h.made
	o.Stall = 50 * time.Millisecond
	ended := make(chan struct{})
	o.Services.Events = followed{o.Services.Events, ended}
	slow := h.serve(o)
	u, err := url.Parse(slow.url)
	must(t, err)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
	must(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /v1/events?type=volume.created HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", u.Host, adminToken)
	must(t, err)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	must(t, err)
	defer resp.Body.Close()
	const told = 500 // events of more than 20 KB each
	db := h.made.Services.Events.(*events.Log).Store()
	for done := 0; done < told; done += 50 {
		must(t, db.Update(t.Context(), func(tx store.Tx) error {
			for i := range 50 {
				if err := tx.Volumes().Insert(&sandbox.Volume{ID: sandbox.NewID(), Project: "default", Name: fmt.Sprint(strings.Repeat("v", 20_000), done+i), Runtime: "memory", State: sandbox.VolumeReady, CreatedAt: time.Now()}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	<-ended // it is followed no longer, and has read nothing
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the answer broke off after %d bytes: %v", len(body), err)
	}
	end := string(body[max(0, strings.LastIndex(string(body), "event: ")):])
	if !strings.Contains(end, "event: error\n") || !strings.Contains(end, `"code":"unavailable"`) || !strings.Contains(end, "took nothing of it") || !strings.Contains(end, "Last-Event-ID") {
		t.Errorf("it ends with %s", end)
	}
	n := strings.Count(string(body), "event: volume.created\n")
	if n >= told {
		t.Errorf("got all %d events", n)
	}
	last := events.Oldest
	for _, id := range regexp.MustCompile(`(?m)^id: (.+)$`).FindAllStringSubmatch(string(body), -1) {
		last = id[1] // it goes on behind the last that came
	}
	a := h.do("GET", "/v1/events?type=volume.created&follow=false", nil, "Last-Event-ID", last)
	if rest := strings.Count(string(a.body), "event: volume.created\n"); !strings.Contains(string(a.body), "event: reset") && n+rest != told {
		t.Errorf("%d events, and then %d", n, rest)
	}
}
