// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

const browserAccepts = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func TestTheFrontDoor(t *testing.T) {
	i := newInstallation(t)
	i.cfg.Console.Enabled = false
	shipped := i.cfg.Public
	for _, c := range []struct {
		name         string
		public       []string
		links, lacks []string
	}{
		{"AsShipped", shipped, []string{`href="/connect"`, `href="/v1/openapi.json"`}, nil},
		{"NothingPublic", nil, nil, []string{"href="}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i.cfg.Public = c.public
			url, stop, err := i.start(Adopt{})
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			ask := func(method, path, accept string, change func(*http.Request)) (*http.Response, string) {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Accept", accept)
				if change != nil {
					change(req)
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				b, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return resp, string(b)
			}
			resp, text := ask("GET", "/", browserAccepts, nil)
			if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") || resp.Header.Get("Www-Authenticate") != "" {
				t.Fatalf("%s %v\n%s", resp.Status, resp.Header, text)
			}
			if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || resp.Header.Get("Vary") == "" {
				t.Errorf("policy %q, Vary %q", policy, resp.Header.Get("Vary"))
			}
			for _, want := range append(c.links, url+"/mcp", "SANDPIT_URL="+url, url+"/v1/sandboxes") {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in\n%s", want, text)
				}
			}
			for _, not := range append(c.lacks, "<script", i.cfg.Data, "ZgotmplZ", "{{") {
				if strings.Contains(text, not) {
					t.Errorf("%q is in\n%s", not, text)
				}
			}
			if resp, text := ask("HEAD", "/", browserAccepts, nil); resp.StatusCode != 200 || text != "" {
				t.Errorf("HEAD: %s %q", resp.Status, text)
			}
			for name, r := range map[string]struct {
				method, accept string
				change         func(*http.Request)
				status         int
			}{
				"AProgram":    {"GET", "*/*", nil, 401},
				"JSONFirst":   {"GET", "application/json, text/html;q=0.5", nil, 401},
				"NoAccept":    {"GET", "", nil, 401},
				"AWrongToken": {"GET", browserAccepts, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 401},
				"POST":        {"POST", browserAccepts, nil, 401},
				"AnotherHost": {"GET", browserAccepts, func(r *http.Request) { r.Host = "rebound.example" }, 403},
				"AnotherSite": {"GET", browserAccepts, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
			} {
				if resp, text := ask(r.method, "/", r.accept, r.change); resp.StatusCode != r.status || strings.Contains(text, "<html") {
					t.Errorf("%s: %s\n%s", name, resp.Status, text)
				}
			}
		})
	}
}

// Clients of MCP that got a 401 look for a sign-in, and give up only where they get a 404.
func TestThereIsNoSignIn(t *testing.T) {
	i := newInstallation(t)
	url, stop, err := i.start(Adopt{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, c := range [][2]string{
		{"GET", "/.well-known/oauth-protected-resource"}, {"GET", "/.well-known/oauth-protected-resource/mcp"},
		{"GET", "/.well-known/oauth-authorization-server"}, {"GET", "/.well-known/openid-configuration/mcp"}, {"POST", "/register"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c[0], url+c[1], strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 404 || resp.Header.Get("Www-Authenticate") != "" || !strings.Contains(string(b), "sandpit token create") {
			t.Errorf("%s %s: %s %v\n%s", c[0], c[1], resp.Status, err, b)
		}
	}
}

// TestTheFrontDoorOfAConsole has a browser led to the console, and a program told what it was before.
func TestTheFrontDoorOfAConsole(t *testing.T) {
	i := newInstallation(t)
	url, stop, err := i.start(Adopt{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, c := range []struct {
		path, accept   string
		status         int
		location, says string
	}{
		{"/", browserAccepts, 302, "/console/", ""},
		{"/", "*/*", 401, "", "no token"},
		{"/console/", browserAccepts, 200, "", `<div id="app">`},
		{"/console/sandboxes/x", browserAccepts, 200, "", `<div id="app">`},
		{"/console", browserAccepts, 301, "/console/", ""},
		{"/console/assets/none.js", "*/*", 404, "", "no such file"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", c.accept)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if location := strings.TrimPrefix(resp.Header.Get("Location"), url); resp.StatusCode != c.status && !(c.status == 301 && resp.StatusCode == 307) || location != c.location || !strings.Contains(string(b), c.says) {
			t.Errorf("%s: got %d %q %.200s", c.path, resp.StatusCode, location, b)
		}
	}
}
