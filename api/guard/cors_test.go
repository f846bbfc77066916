// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
)

// listed returns the names in a header, in lower case.
func listed(h http.Header, name string) []string {
	var out []string
	for one := range strings.SplitSeq(strings.Join(h.Values(name), ","), ",") {
		out = append(out, strings.ToLower(strings.TrimSpace(one)))
	}
	return out
}

func TestPagesOfNamedOrigins(t *testing.T) {
	const page = "https://console.example.org"
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Add("Vary", "Accept"); w.WriteHeader(200) })
	ask := func(method, origin, token string, headers ...string) *http.Response {
		r := httptest.NewRequest(method, "http://127.0.0.1:8080/things/1", nil)
		if origin != "" {
			r.Header.Set("Origin", origin)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "cors")
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w.Result()
	}
	preflight := []string{"Access-Control-Request-Method", "PATCH", "Access-Control-Request-Headers", "authorization,x-sandpit-project,x-evil,x-sandpit-\x01"}
	silent := func(t *testing.T, resp *http.Response) {
		t.Helper()
		for name := range resp.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("it has %s: %v", name, resp.Header[name])
			}
		}
	}
	t.Run("APreflightNeedsNoToken", func(t *testing.T) {
		resp := ask("OPTIONS", page, "", append(preflight, "Access-Control-Request-Private-Network", "true")...)
		h := resp.Header
		if resp.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != page || h.Get("Access-Control-Allow-Private-Network") != "true" {
			t.Errorf("got %d %v", resp.StatusCode, h)
		}
		for _, name := range []string{"authorization", "content-type", "mcp-session-id", "mcp-protocol-version", "idempotency-key", "last-event-id", "x-sandpit-project"} {
			if !slices.Contains(listed(h, "Access-Control-Allow-Headers"), name) {
				t.Errorf("the header %s is not allowed: %v", name, h)
			}
		}
		for _, name := range []string{"x-evil", "x-sandpit-\x01", "*"} {
			if slices.Contains(listed(h, "Access-Control-Allow-Headers"), name) {
				t.Errorf("the header %q is allowed", name)
			}
		}
		if !slices.Contains(listed(h, "Access-Control-Allow-Methods"), "patch") || !slices.Contains(listed(h, "Vary"), "origin") || h["Access-Control-Allow-Credentials"] != nil {
			t.Errorf("got %v", h)
		}
	})
	t.Run("AnswersCanBeRead", func(t *testing.T) {
		for token, status := range map[string]int{"right": 200, "wrong": 401, "": 401} {
			resp := ask("GET", page, token)
			h := resp.Header
			if resp.StatusCode != status || h.Get("Access-Control-Allow-Origin") != page || h["Access-Control-Allow-Credentials"] != nil {
				t.Errorf("got %d %v", resp.StatusCode, h)
			}
			for _, name := range []string{"mcp-session-id", "x-request-id", "retry-after"} {
				if !slices.Contains(listed(h, "Access-Control-Expose-Headers"), name) {
					t.Errorf("the header %s is not exposed", name)
				}
			}
			if status == 200 && !slices.Contains(listed(h, "Vary"), "accept") || !slices.Contains(listed(h, "Vary"), "origin") {
				t.Errorf("it varies by %v", h.Values("Vary"))
			}
		}
	})
	t.Run("OthersAreToldNothing", func(t *testing.T) {
		for _, origin := range []string{"https://evil.example", page + ".evil.example", "http://console.example.org", page + ":8443", "null", "*", strings.ToUpper(page)} {
			resp := ask("OPTIONS", origin, "", preflight...)
			silent(t, resp)
			if resp.StatusCode != 403 {
				t.Errorf("%s: got %d", origin, resp.StatusCode)
			}
			silent(t, ask("GET", origin, "right"))
		}
		resp := ask("GET", "", "right")
		silent(t, resp)
		if resp.StatusCode != 200 || !slices.Contains(listed(resp.Header, "Vary"), "origin") {
			t.Errorf("got %d %v", resp.StatusCode, resp.Header)
		}
	})
	t.Run("WhatIsNoPreflightNeedsAToken", func(t *testing.T) {
		if resp := ask("OPTIONS", page, ""); resp.StatusCode != 401 {
			t.Errorf("without a method: got %d", resp.StatusCode)
		}
		r := httptest.NewRequest("OPTIONS", "http://rebound.example/things/1", nil)
		r.Header.Set("Origin", page)
		r.Header.Set(preflight[0], preflight[1])
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code != 403 {
			t.Errorf("by a rebound name: got %d", w.Code)
		}
	})
	t.Run("WithoutOriginsNothingIsSaid", func(t *testing.T) {
		plain := newSite(t, func(w http.ResponseWriter, _ *http.Request) {}, func(o *guard.Options) { o.Origins = nil })
		r := httptest.NewRequest("GET", "http://127.0.0.1:8080/things/1", nil)
		r.Header.Set("Authorization", "Bearer right")
		w := httptest.NewRecorder()
		plain.handler.ServeHTTP(w, r)
		silent(t, w.Result())
		if w.Header().Get("Vary") != "" {
			t.Errorf("it varies by %q", w.Header().Get("Vary"))
		}
	})
}

func TestOriginsAsTheyAreWritten(t *testing.T) {
	for _, bad := range []string{"*", "null", "", "console.example.org", "https://", "https://a.example/", "https://a.example/x", "https://*.example", "https://a@b.example", "https://a.example?x", "https://a.example#x"} {
		if _, err := guard.New(guard.Options{Tokens: oneToken(""), Origins: []string{bad}}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	for written, sent := range map[string]string{
		"https://Console.Example.org:443": "https://console.example.org", "http://localhost:80": "http://localhost",
		"http://localhost:5173": "http://localhost:5173", "https://[2001:db8::1]": "https://[2001:db8::1]",
	} {
		g, err := guard.New(guard.Options{Tokens: oneToken(""), Origins: []string{written}})
		if err != nil {
			t.Errorf("%q: %v", written, err)
			continue
		}
		r := httptest.NewRequest("OPTIONS", "http://127.0.0.1:8080/x", nil)
		r.Header.Set("Origin", sent)
		r.Header.Set("Access-Control-Request-Method", "POST")
		w := httptest.NewRecorder()
		g.Wrap("rest", http.NotFoundHandler()).ServeHTTP(w, r)
		if w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != sent {
			t.Errorf("%q: got %d %v", written, w.Code, w.Header())
		}
	}
}
