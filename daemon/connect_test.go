// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandpit.dev/api/mcp"
	"sandpit.dev/internal/mcpsetup"
)

func connect(t *testing.T, target string, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	newConnect().ServeHTTP(w, r)
	return w
}

func TestTheConnectPageSaysWhatClientsRead(t *testing.T) {
	w := connect(t, "http://127.0.0.1:8080/connect", nil)
	text := html.UnescapeString(w.Body.String())
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	s := mcpsetup.Server{Name: "sandpit", URL: "http://127.0.0.1:8080/mcp", Program: "sandpit"}
	for _, c := range mcpsetup.Clients() {
		one := s
		if !c.Refers(one) {
			one.Token = "TOKEN"
		}
		if !strings.Contains(text, `<pre tabindex="0">`+c.Snippet(one)+"</pre>") {
			t.Errorf("%s: its form is missing:\n%s", c.ID, c.Snippet(one))
		}
		if link := c.Link(one); link != "" && !strings.Contains(text, `href="`+link+`"`) {
			t.Errorf("%s: the link %s is missing", c.ID, link)
		}
		if line := c.Command(one); line != "" && !strings.Contains(text, `<pre tabindex="0">`+line+"</pre>") {
			t.Errorf("%s: the line %s is missing", c.ID, line)
		}
	}
	for _, name := range mcp.Profiles() {
		if !strings.Contains(text, name) {
			t.Errorf("the profile %s is not named", name)
		}
	}
}

func TestTheConnectPageIsForTheAddressAskedAt(t *testing.T) {
	w := connect(t, "http://box.example/connect?profile=mcp-sandboxd", func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") })
	if text := html.UnescapeString(w.Body.String()); !strings.Contains(text, `"url": "https://box.example/mcp/mcp-sandboxd"`) || !strings.Contains(text, `"connect",`) {
		t.Errorf("%s", text)
	}
	if w := connect(t, "http://box.example/connect?profile=%3Cscript%3E", nil); w.Code != http.StatusUnprocessableEntity && w.Code != http.StatusBadRequest {
		t.Errorf("a profile that is none: %d", w.Code)
	}
}

func TestTheConnectPageRunsNothing(t *testing.T) {
	// The guard lets only known hosts pass; the page does not rely on it.
	w := connect(t, "http://box.example/connect", func(r *http.Request) {
		r.Host = `x"><script>alert(1)</script>`
		r.Header.Set("Authorization", "Bearer spt_mine")
	})
	text := w.Body.String()
	if strings.Contains(text, "<script") || strings.Contains(text, "spt_mine") || strings.Contains(text, "ZgotmplZ") {
		t.Errorf("%s", text)
	}
	policy := w.Header().Get("Content-Security-Policy")
	style := text[strings.Index(text, "<style>")+len("<style>") : strings.Index(text, "</style>")]
	sum := sha256.Sum256([]byte(style))
	if !strings.HasPrefix(policy, "default-src 'none';") || !strings.Contains(policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy %q, for a style of %q", policy, base64.StdEncoding.EncodeToString(sum[:]))
	}
}
