// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
)

func TestLinkedFiles(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.create().ID
	files := "/v1/sandboxes/" + id + "/files/"
	for name, content := range map[string]string{"a b.txt": "0123456789", "evil.html": "<script>alert(1)</script>", "evil.svg": "<svg onload='alert(1)'/>"} {
		if a := h.do("PUT", files+url.PathEscape(name), []byte(content)); a.StatusCode != 204 {
			t.Fatalf("got %d %s", a.StatusCode, a.body)
		}
	}
	links, err := filelink.New(bytes.Repeat([]byte{1}, 32))
	must(t, err)
	srv := newServer(h.api.LinkedFiles(links))
	t.Cleanup(srv.Close)
	grant := func(path string) filelink.Grant {
		return filelink.Grant{Project: access.DefaultProject, Sandbox: id, Path: path, Expires: time.Now().Add(time.Hour)}
	}
	anyone := *h
	anyone.url, anyone.token = srv.URL, ""
	to := func(g filelink.Grant) string {
		u, err := url.Parse(links.Address(httptest.NewRequest("GET", "/", nil), g))
		must(t, err)
		return u.EscapedPath()
	}
	good := to(grant("/workspace/a b.txt"))

	a := anyone.do("GET", good, nil)
	if a.StatusCode != 200 || string(a.body) != "0123456789" || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got %d %q %v", a.StatusCode, a.body, a.Header)
	}
	if a := anyone.do("GET", good, nil, "Range", "bytes=2-4"); a.StatusCode != 206 || string(a.body) != "234" {
		t.Errorf("a range: got %d %q", a.StatusCode, a.body)
	}
	if a := anyone.do("HEAD", good, nil); a.StatusCode != 200 || a.ContentLength != 10 {
		t.Errorf("HEAD: got %d, %d bytes", a.StatusCode, a.ContentLength)
	}
	for _, name := range []string{"evil.html", "evil.svg"} {
		a := anyone.do("GET", to(grant("/workspace/"+name)), nil)
		if a.StatusCode != 200 || a.Header.Get("Content-Disposition") != "attachment" || !strings.Contains(a.Header.Get("Content-Security-Policy"), "sandbox") || a.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: got %d %v", name, a.StatusCode, a.Header)
		}
	}

	expired, foreign := grant("/workspace/a b.txt"), grant("/workspace/a b.txt")
	expired.Expires = time.Now().Add(-time.Second)
	foreign.Project = "other"
	for name, c := range map[string]struct {
		method, path string
		status       int
	}{
		"AnotherName":      {"GET", strings.TrimSuffix(good, "a%20b.txt") + "invoice.html", http.StatusNotFound},
		"AChangedToken":    {"GET", strings.Replace(good, ".", ".A", 1), http.StatusUnauthorized},
		"Expired":          {"GET", to(expired), http.StatusUnauthorized},
		"AnotherProject":   {"GET", to(foreign), http.StatusNotFound},
		"NoSuchFile":       {"GET", to(grant("/workspace/none")), http.StatusNotFound},
		"ADirectory":       {"GET", to(grant("/workspace")), http.StatusUnprocessableEntity},
		"AWrite":           {"PUT", good, http.StatusMethodNotAllowed},
		"ADelete":          {"DELETE", good, http.StatusMethodNotAllowed},
		"NoLink":           {"GET", "/files/", http.StatusNotFound},
		"AnAPITokenAsLink": {"GET", "/files/" + adminToken + "/x", http.StatusUnauthorized},
	} {
		a := anyone.do(c.method, c.path, nil)
		if a.StatusCode != c.status || strings.Contains(string(a.body), "0123456789") {
			t.Errorf("%s: got %d %s, want %d", name, a.StatusCode, a.body, c.status)
		}
	}
	if a := h.do("DELETE", "/v1/sandboxes/"+id, nil); a.StatusCode >= 300 {
		t.Fatalf("got %d", a.StatusCode)
	}
	if a := anyone.do("GET", good, nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("of a sandbox that is deleted: got %d", a.StatusCode)
	}
}
