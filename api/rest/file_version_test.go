// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
	v1 "sandpit.dev/api/v1"
)

func TestAFileIsReplacedByItsVersion(t *testing.T) {
	t.Parallel()
	h := open(t)
	at := "/v1/sandboxes/" + h.create().ID
	path := at + "/files/notes.txt"
	text := strings.Repeat("one\n", 1000) // enough for gzip
	want[any](h, 204, "PUT", path, []byte(text))
	read := h.do("GET", path, nil, "Accept-Encoding", "identity")
	tag := read.Header.Get("Etag")
	if len(tag) != 34 || tag[0] != '"' {
		t.Fatalf("a read tells the tag %q, want a strong one", tag)
	}
	has := func(t *testing.T, content string) {
		t.Helper()
		if a := h.do("GET", path, nil); string(a.body) != content {
			t.Errorf("the file has %.40q, want %.40q", a.body, content)
		}
	}
	t.Run("ToldEverywhere", func(t *testing.T) {
		info := h.do("GET", at+"/stat?path=notes.txt", nil)
		one := want[v1.FileInfo](h, 200, "GET", at+"/stat?path=notes.txt", nil)
		inJSON := want[v1.FileContent](h, 200, "GET", at+"/files?path=notes.txt", nil)
		for where, got := range map[string]string{
			"head": h.do("HEAD", path, nil).Header.Get("Etag"), "stat": info.Header.Get("Etag"), "in stat": `"` + one.Version + `"`,
			"in JSON": `"` + inJSON.Version + `"`, "JSON": h.do("GET", at+"/files?path=notes.txt", nil).Header.Get("Etag"),
			"range": h.do("GET", path, nil, "Range", "bytes=0-1").Header.Get("Etag"),
		} {
			if got != tag {
				t.Errorf("%s: got %s, want %s", where, got, tag)
			}
		}
		if a := h.do("GET", at+"/files?path=notes.txt", nil, "If-None-Match", tag); a.StatusCode != 304 || len(a.body) > 0 {
			t.Errorf("JSON: got %d, want 304", a.StatusCode)
		}
		if a := h.do("HEAD", at+"/files/", nil); a.Header.Get("Etag") != "" {
			t.Errorf("a directory has the tag %q", a.Header.Get("Etag"))
		}
	})
	t.Run("OnlyThatOne", func(t *testing.T) {
		for name, header := range map[string]string{"Another": `"00000000000000000000000000000000"`, "Weak": "W/" + tag, "Long": `"` + strings.Repeat("x", 5000) + `"`} {
			a := h.do("PUT", path, []byte("mine"), "If-Match", header)
			p := want[v1.Problem](h, 412, "PUT", path, []byte("mine"), "If-Match", header)
			if a.Header.Get("Etag") != tag || `"`+p.Version+`"` != tag || p.Code != "precondition_failed" || p.Remedy == "" {
				t.Errorf("%s: got the tag %q and %+v", name, a.Header.Get("Etag"), p)
			}
		}
		has(t, text)
		a := h.do("PUT", path, []byte("two"), "If-Match", `"x", `+tag)
		if a.StatusCode != 204 || a.Header.Get("Etag") == tag || a.Header.Get("Etag") != h.do("GET", path, nil).Header.Get("Etag") {
			t.Fatalf("got %d %q %s", a.StatusCode, a.Header.Get("Etag"), a.body)
		}
		has(t, "two")
		if a := h.do("GET", path, nil, "If-None-Match", tag); a.StatusCode != 200 {
			t.Errorf("got %d for what was replaced", a.StatusCode)
		}
		if old := h.do("PUT", path, []byte("three"), "If-Match", tag); old.StatusCode != 412 || old.Header.Get("Etag") != a.Header.Get("Etag") {
			t.Errorf("got %d %q", old.StatusCode, old.Header.Get("Etag"))
		}
	})
	t.Run("AsGzip", func(t *testing.T) {
		want[any](h, 204, "PUT", path, []byte(text))
		a := h.do("GET", path, nil, "Accept-Encoding", "gzip")
		zipped := a.Header.Get("Etag")
		r, err := gzip.NewReader(bytes.NewReader(a.body))
		must(t, err)
		if all, err := io.ReadAll(r); err != nil || string(all) != text || !strings.HasSuffix(zipped, `-gzip"`) {
			t.Fatalf("got %q with the tag %s, %v", all, zipped, err)
		}
		if a := h.do("PUT", path, []byte("three"), "If-Match", zipped); a.StatusCode != 204 {
			t.Errorf("what was read as gzip: got %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("InJSON", func(t *testing.T) {
		now := want[v1.FileInfo](h, 200, "GET", at+"/stat?path=notes.txt", nil).Version
		body := object{"path": "notes.txt", "content": "four"}
		next := want[v1.FileInfo](h, 200, "POST", at+"/files", body, "If-Match", `"`+now+`"`)
		if next.Version == "" || next.Version == now {
			t.Errorf("got %+v", next)
		}
		if p := want[v1.Problem](h, 412, "POST", at+"/files", body, "If-Match", `"`+now+`"`); p.Version != next.Version {
			t.Errorf("got %+v", p)
		}
		want[v1.Problem](h, 412, "POST", at+"/files", body, "If-None-Match", "*")
		body["path"] = "new.txt"
		if made := want[v1.FileInfo](h, 201, "POST", at+"/files", body, "If-None-Match", "*"); made.Version == "" {
			t.Errorf("got %+v", made)
		}
	})
	t.Run("Made", func(t *testing.T) {
		if a := h.do("PUT", at+"/files/deep/made", []byte("x"), "If-None-Match", "*"); a.StatusCode != 204 || a.Header.Get("Etag") == "" {
			t.Errorf("got %d %q", a.StatusCode, a.Header.Get("Etag"))
		}
		want[v1.Problem](h, 412, "PUT", at+"/files/deep/made", []byte("y"), "If-None-Match", "*")
		a := h.do("PUT", at+"/files/none", []byte("y"), "If-Match", "*")
		if p := want[v1.Problem](h, 412, "PUT", at+"/files/none", []byte("y"), "If-Match", "*"); p.Version != "" || a.Header.Get("Etag") != "" {
			t.Errorf("got %+v and the tag %q of what is not there", p, a.Header.Get("Etag"))
		}
		want[v1.Problem](h, 404, "GET", at+"/files/none", nil)
	})
	t.Run("Deleted", func(t *testing.T) {
		want[v1.Problem](h, 412, "DELETE", path, nil, "If-Match", tag)
		want[v1.Problem](h, 422, "DELETE", path, nil, "If-None-Match", "*")
		want[any](h, 204, "DELETE", path, nil, "If-Match", h.do("GET", path, nil).Header.Get("Etag"))
		want[v1.Problem](h, 404, "GET", path, nil)
	})
	t.Run("WhatIsNoCondition", func(t *testing.T) {
		want[any](h, 204, "PUT", path, []byte("kept"))
		now := h.do("GET", path, nil).Header.Get("Etag")
		for name, headers := range map[string][]string{
			"Both": {"If-Match", now, "If-None-Match", "*"}, "NoneOfOne": {"If-None-Match", now}, "NoQuotes": {"If-Match", strings.Trim(now, `"`)},
			"HalfQuoted": {"If-Match", now[:10]}, "Nothing": {"If-Match", " "}, "Commas": {"If-Match", ",,"}, "StarAmongOthers": {"If-Match", "*, " + now},
			"TooMany": {"If-Match", strings.Repeat(now+",", 17)}, "Quotes": {"If-Match", `"a"b"`}, "EmptyNone": {"If-None-Match", " "},
		} {
			for _, method := range []string{"PUT", "DELETE"} {
				p := want[v1.Problem](h, 422, method, path, []byte("lost"), headers...)
				if len(p.Errors) != 1 || !strings.HasPrefix(p.Errors[0].Field, "If-") {
					t.Errorf("%s: got %+v", name, p)
				}
			}
		}
		has(t, "kept")
	})
}

// A link for writing reads nothing, and a condition tells by it no more than that the file is there.
func TestALinkToWriteTakesConditions(t *testing.T) {
	t.Parallel()
	h := open(t)
	links, err := filelink.New(bytes.Repeat([]byte{1}, 32))
	must(t, err)
	srv := newServer(h.api.LinkedFiles(links))
	t.Cleanup(srv.Close)
	anyone := *h
	anyone.url, anyone.token = srv.URL, ""
	u, err := url.Parse(links.Address(httptest.NewRequest("GET", "/", nil), filelink.Grant{
		Project: access.DefaultProject, Sandbox: h.create().ID, Path: "/workspace/up.txt", Expires: time.Now().Add(time.Hour), Write: true, Most: 100,
	}))
	must(t, err)
	put := func(status int, headers ...string) answer {
		t.Helper()
		a := anyone.do("PUT", u.EscapedPath(), []byte("x"), headers...)
		if a.StatusCode != status {
			t.Errorf("%v: got %d %s, want %d", headers, a.StatusCode, a.body, status)
		}
		return a
	}
	put(204, "If-None-Match", "*")
	tag := put(412, "If-None-Match", "*").Header.Get("Etag")
	put(204, "If-Match", tag)
	put(412, "If-Match", tag)
}
