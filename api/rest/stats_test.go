// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestStats(t *testing.T) {
	t.Parallel()
	t.Run("FollowedUntilTheSandboxIsDeleted", func(t *testing.T) {
		h := open(t)
		id := h.create().ID
		one, all := h.listen("/v1/sandboxes/"+id+"/stats?follow=true"), h.listen("/v1/stats?follow=true&history=true")
		for range 2 {
			var s v1.SandboxStats
			var l v1.StatsList
			ev := one.next()
			must(t, json.Unmarshal([]byte(ev["data"]), &s))
			must(t, json.Unmarshal([]byte(all.next()["data"]), &l))
			if ev["event"] != v1.StatsEvent || s.ID != id || s.Now == nil || s.Now.Tasks == nil || s.History == nil {
				t.Errorf("got %q", ev)
			}
			if len(l.Items) != 1 || l.Items[0].Now == nil || l.Total.Sandboxes != 1 || l.Total.MemoryBytes == nil || l.Host == nil || l.Host.CPULimit < 1 || *l.Host.Now.MemoryBytes <= 0 {
				t.Errorf("got %+v", l)
			}
		}
		h.do("POST", "/v1/sandboxes/"+id+"/stop", nil)
		for ev := one.next(); !strings.Contains(ev["data"], `"status":"stopped","`) || !strings.Contains(ev["data"], `"now":null`); ev = one.next() {
			if ev == nil {
				t.Fatal("a stop ends it")
			}
		}
		h.do("DELETE", "/v1/sandboxes/"+id, nil)
		ev := one.next()
		for ev["event"] == v1.StatsEvent {
			ev = one.next()
		}
		if ev["event"] != "error" || !strings.Contains(ev["data"], `"not_found"`) {
			t.Errorf("at the end: got %q", ev)
		}
		h.api.Close()
		for ev = all.next(); ev["event"] == v1.StatsEvent; ev = all.next() {
		}
		if ev["event"] != "error" || !strings.Contains(ev["data"], "the server is stopping") {
			t.Errorf("at the server's end: got %q", ev)
		}
	})

	t.Run("TheHostIsForWhoRunsTheServer", func(t *testing.T) {
		h := open(t)
		h.create()
		other := h.as("other", access.SandboxesRead, access.Admin)
		var l v1.StatsList
		must(t, json.Unmarshal(other.do("GET", "/v1/stats", nil).body, &l))
		if l.Host != nil || len(l.Items) != 0 || l.Total.Sandboxes != 0 {
			t.Errorf("another project's administrator: got %+v", l)
		}
		if a := other.do("GET", "/v1/stats?all_projects=true&follow=true", nil); a.StatusCode != 403 {
			t.Errorf("all projects: got %d %s", a.StatusCode, a.body)
		}
		if a := other.do("HEAD", "/v1/stats?follow=true", nil); a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("HEAD: got %d", a.StatusCode)
		}
	})

	t.Run("BoundedAndOverWithTheirClients", func(t *testing.T) {
		h := open(t)
		id := h.create().ID
		c := client.New(h.url, h.token, client.Options{HTTP: plain})
		var open []*stream
		for range 16 {
			open = append(open, h.listen("/v1/stats?follow=true"))
		}
		for _, s := range open {
			s.next()
		}
		// On a busy machine a sign of life may have gone before the refusal, which is then an event.
		a := h.do("GET", "/v1/sandboxes/"+id+"/stats?follow=true", nil)
		if told := strings.Contains(string(a.body), `"status":429`); a.StatusCode != http.StatusTooManyRequests && !told {
			t.Errorf("one more: got %d %s", a.StatusCode, a.body)
		}
		for _, s := range open {
			s.cancel()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		enough := errors.New("enough")
		for { // the server sees that they left
			err := c.FollowStats(ctx, id, func(s *v1.SandboxStats) error {
				if s.Now == nil {
					t.Errorf("got %+v", s)
				}
				return enough
			})
			if err == enough {
				break
			}
			if !fault.Is(err, fault.Exhausted) {
				t.Fatal(err)
			}
		}
		told := 0
		if err := c.FollowAllStats(ctx, client.StatsQuery{AllProjects: true}, func(l *v1.StatsList) error {
			if told++; len(l.Items) != 1 || l.Host == nil {
				t.Errorf("got %+v", l)
			}
			if told == 2 {
				return enough
			}
			return nil
		}); err != enough {
			t.Error(err)
		}
		l, err := c.AllStats(ctx, client.StatsQuery{History: true})
		if err != nil || len(l.Items) != 1 {
			t.Errorf("got %+v, %v", l, err)
		}
	})
}

func TestStatsOfProcesses(t *testing.T) {
	t.Parallel()
	h := open(t)
	at := "/v1/sandboxes/" + h.create().ID + "/stats?processes="
	for _, bad := range []string{"0", "-1", "501", "x"} {
		if a := h.do("GET", at+bad, nil); a.StatusCode != 422 && a.StatusCode != 400 {
			t.Errorf("%s: got %d %s", bad, a.StatusCode, a.body)
		}
	}
	// The fake does not tell its processes apart.
	if p := want[v1.Problem](h, 501, "GET", at+"10", nil); p.Code != "unsupported" || p.Remedy == "" {
		t.Errorf("got %+v", p)
	}
	want[v1.Problem](h.as("other", access.SandboxesRead), 404, "GET", at+"10", nil)
}
