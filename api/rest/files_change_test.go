// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
)

func inGzip(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func TestChangesOfFiles(t *testing.T) {
	t.Parallel()
	h := open(t)
	at := "/v1/sandboxes/" + h.create().ID
	if a := h.do("PUT", at+"/files/d/e/f.txt?attributes="+url.QueryEscape(`{"source":"crawl, =é","n":"1"}`), []byte("one two")); a.StatusCode != 204 {
		t.Fatalf("got %d %s", a.StatusCode, a.body)
	}
	info := want[v1.FileInfo](h, 200, "GET", at+"/stat?path=d/e/f.txt", nil)
	if diff := cmp.Diff(map[string]string{"source": "crawl, =é", "n": "1"}, info.Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	want[v1.Problem](h, 422, "PUT", at+"/files/d/e/f.txt?attributes=nothing", []byte("x"))
	want[v1.Problem](h, 422, "PUT", at+"/files/d/e/f.txt?attributes=null", []byte("x"))
	want[v1.FileInfo](h, 200, "POST", at+"/files", object{"path": "d/e/f.txt", "content": "one two", "attributes": object{"k": "v"}})

	changed := want[v1.FileChanged](h, 200, "PATCH", at+"/stat?path=d/e/f.txt", object{"mode": "0", "attributes": object{"more": "1"}, "remove_attributes": []string{"k"}})
	if changed.Changed != 1 || changed.File.Mode != "0000" {
		t.Errorf("got %+v", changed)
	}
	changed = want[v1.FileChanged](h, 200, "PATCH", at+"/stat?path=d", object{"mode": "0755", "recursive": true})
	if changed.Changed != 3 || changed.LeftOutTotal != 0 {
		t.Errorf("of a tree: %+v", changed)
	}
	for _, bad := range []object{{}, {"mode": "4755"}, {"mode": "9"}, {"owner": "nobody-there"}, {"group": "4294967295"}, {"attributes": object{"": "x"}}, {"attributes": object{"k": strings.Repeat("v", 4096)}}} {
		want[v1.Problem](h, 422, "PATCH", at+"/stat?path=d/e/f.txt", bad)
	}
	want[v1.Problem](h, 404, "PATCH", at+"/stat?path=none", object{"mode": "0755"})
	want[v1.Problem](h, 422, "PATCH", at+"/stat", object{"mode": "0755"})

	tree := want[[]v1.FileEntry](h, 200, "GET", at+"/files?depth=32", nil)
	names := []string{}
	for _, e := range tree {
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{"d", "d/e", "d/e/f.txt"}, names); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	detailed := want[[]v1.FileInfo](h, 200, "GET", at+"/files?depth=2&detail=true&path=d", nil)
	if len(detailed) != 2 || detailed[1].Path != "/workspace/d/e/f.txt" || detailed[1].Name != "f.txt" {
		t.Errorf("got %+v", detailed)
	}
	for _, bad := range []string{"0", "33", "x"} {
		want[v1.Problem](h, 422, "GET", at+"/files?depth="+bad, nil)
	}

	found := want[v1.FoundFiles](h, 200, "GET", at+"/find?glob=*.txt", nil)
	if found.Path != "/workspace" || len(found.Files) != 1 || found.Files[0].Path != "/workspace/d/e/f.txt" {
		t.Errorf("found %+v", found)
	}
	want[v1.Problem](h, 422, "GET", at+"/find?glob=%5B", nil)
	want[v1.Problem](h, 422, "GET", at+"/find?depth=0", nil)
	lines := want[v1.FoundLines](h, 200, "GET", at+"/search?pattern=T.O&ignore_case=true", nil)
	if len(lines.Matches) != 1 || lines.Matches[0] != (v1.FoundLine{Path: "/workspace/d/e/f.txt", Line: 1, Text: "one two"}) {
		t.Errorf("found %+v", lines)
	}
	if lines := want[v1.FoundLines](h, 200, "GET", at+"/search?pattern=t.o&literal=true", nil); len(lines.Matches) != 0 {
		t.Errorf("a text was taken for an expression: %+v", lines)
	}
	want[v1.Problem](h, 422, "GET", at+"/search", nil)
	want[v1.Problem](h, 422, "GET", at+"/search?pattern=(", nil)

	got := want[v1.FilesReplaced](h, 200, "POST", at+"/replace", object{"files": []string{"d/e/f.txt", "none"}, "pattern": `(\w+) (\w+)`, "replacement": "$2 $1", "regex": true})
	if got.Changed != 1 || got.Failed != 1 || got.Replacements != 1 || got.Files[1].Code != "not_found" || got.Files[1].Error == "" {
		t.Errorf("got %+v", got)
	}
	if a := h.do("GET", at+"/files/d/e/f.txt", nil); string(a.body) != "two one" {
		t.Errorf("the file is %q", a.body)
	}
	for _, bad := range []object{{"files": []string{}, "pattern": "x", "replacement": ""}, {"files": []string{"f"}, "pattern": "", "replacement": ""}, {"files": []string{"f"}, "pattern": "(", "replacement": "", "regex": true}, {"files": []string{"a\x00"}, "pattern": "x", "replacement": ""}} {
		want[v1.Problem](h, 422, "POST", at+"/replace", bad)
	}
}

func TestCompressedFiles(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *rest.Options) { o.MaxFile = 1 << 20 })
	at := "/v1/sandboxes/" + h.create().ID
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	put := func(name string, body []byte) answer {
		return h.do("PUT", at+"/files/"+name, body, "Content-Encoding", "gzip")
	}
	if a := put("f", inGzip(t, content)); a.StatusCode != 204 {
		t.Fatalf("got %d %s", a.StatusCode, a.body)
	}
	if a := h.do("GET", at+"/files/f", nil, "Accept-Encoding", "identity"); !bytes.Equal(a.body, content) || a.Header.Get("Content-Encoding") != "" || a.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("got %d bytes, %v", len(a.body), a.Header)
	}
	a := h.do("GET", at+"/files/f", nil, "Accept-Encoding", "br, gzip;q=0.5")
	r, err := gzip.NewReader(bytes.NewReader(a.body))
	must(t, err)
	plain, err := io.ReadAll(r)
	must(t, err)
	if !bytes.Equal(plain, content) || a.Header.Get("Content-Encoding") != "gzip" || len(a.body) > len(content)/10 {
		t.Errorf("in gzip: %d bytes of %d, %v", len(plain), len(a.body), a.Header)
	}
	if b := h.do("GET", at+"/files/f", nil, "Accept-Encoding", "gzip", "If-None-Match", a.Header.Get("Etag")); b.StatusCode != 304 {
		t.Errorf("its tag is not known: %d", b.StatusCode)
	}
	for _, header := range [][]string{{"Accept-Encoding", "gzip;q=0"}, {"Accept-Encoding", "gzip", "Range", "bytes=0-2047"}} {
		if a := h.do("GET", at+"/files/f", nil, header...); a.Header.Get("Content-Encoding") != "" {
			t.Errorf("%q: %v", header, a.Header)
		}
	}
	for name, c := range map[string]struct {
		body   []byte
		status int
	}{
		"no gzip":         {[]byte("plain text"), 400},
		"nothing":         {[]byte{}, 400},
		"half":            {inGzip(t, content)[:30], 400},
		"a wrong sum":     {append(inGzip(t, content)[:len(inGzip(t, content))-8], 0, 0, 0, 0, 0, 0, 0, 0), 400},
		"rubbish behind":  {append(inGzip(t, content), "more"...), 400},
		"a bomb":          {inGzip(t, make([]byte, 64<<20)), 413},
		"a bomb in parts": {bytes.Repeat(inGzip(t, make([]byte, 1<<16)), 17), 413},
	} {
		if a := put("f", c.body); a.StatusCode != c.status {
			t.Errorf("%s: got %d %s, want %d", name, a.StatusCode, a.body, c.status)
		}
		if a := h.do("GET", at+"/files/f", nil, "Accept-Encoding", "identity"); !bytes.Equal(a.body, content) {
			t.Fatalf("%s has changed the file: %d bytes", name, len(a.body))
		}
	}
	want[v1.Problem](h, 415, "PUT", at+"/files/f", []byte("x"), "Content-Encoding", "br")

	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	must(t, w.WriteHeader(&tar.Header{Name: "in", Mode: 0o644, Size: 3}))
	_, err = w.Write([]byte("tar"))
	must(t, err)
	must(t, w.Close())
	if sum := want[v1.Unpacked](h, 200, "PUT", at+"/archive?path=new", inGzip(t, archive.Bytes()), "Content-Encoding", "gzip"); sum.Bytes != 3 {
		t.Errorf("got %+v", sum)
	}
	want[v1.Problem](h, 400, "PUT", at+"/archive?path=new", inGzip(t, archive.Bytes())[:40], "Content-Encoding", "gzip")
	if a := h.do("GET", at+"/files/new/in", nil); string(a.body) != "tar" {
		t.Errorf("got %q", a.body)
	}
}

func TestLinksForWriting(t *testing.T) {
	t.Parallel()
	links, err := filelink.New(bytes.Repeat([]byte{2}, 32))
	must(t, err)
	h := open(t, func(o *rest.Options) { o.Files = links })
	at := "/v1/sandboxes/" + h.create().ID
	srv := newServer(h.api.LinkedFiles(links))
	t.Cleanup(srv.Close)
	anyone := *h
	anyone.url, anyone.token = srv.URL, ""
	path := func(l v1.FileLink) string {
		u, err := url.Parse(l.URL)
		must(t, err)
		return u.EscapedPath()
	}
	write := want[v1.FileLink](h, 200, "POST", at+"/links", object{"path": "in/a b.txt", "write": true, "max_bytes": 10})
	if write.Method != "PUT" || write.Path != "/workspace/in/a b.txt" || write.MaxBytes != 10 {
		t.Errorf("got %+v", write)
	}
	if a := anyone.do("PUT", path(write), []byte("0123456789")); a.StatusCode != 204 {
		t.Fatalf("got %d %s", a.StatusCode, a.body)
	}
	is := func(what string) {
		t.Helper()
		if a := h.do("GET", at+"/files/in/a%20b.txt", nil); string(a.body) != "0123456789" {
			t.Errorf("%s has changed the file to %q", what, a.body)
		}
	}
	is("the write")
	read := want[v1.FileLink](h, 200, "POST", at+"/links", object{"path": "in/a b.txt"})
	if a := anyone.do("GET", path(read), nil); a.StatusCode != 200 || string(a.body) != "0123456789" {
		t.Errorf("got %d %q", a.StatusCode, a.body)
	}
	for name, c := range map[string]struct {
		method, path string
		body         []byte
		status       int
		header       []string
	}{
		"more than it takes":       {"PUT", path(write), []byte("0123456789x"), 413, nil},
		"a bomb":                   {"PUT", path(write), inGzip(t, make([]byte, 1<<20)), 413, []string{"Content-Encoding", "gzip"}},
		"a part":                   {"PUT", path(write), []byte("x"), 400, []string{"Content-Range", "bytes 0-0/10"}},
		"a reading of it":          {"GET", path(write), nil, 405, nil},
		"a look at it":             {"HEAD", path(write), nil, 405, nil},
		"another verb":             {"DELETE", path(write), nil, 405, nil},
		"a POST":                   {"POST", path(write), []byte("x"), 405, nil},
		"a write by a reader's":    {"PUT", path(read), []byte("x"), 405, nil},
		"another name":             {"PUT", strings.Replace(path(write), "a%20b.txt", "other.txt", 1), []byte("x"), 404, nil},
		"a token with other bytes": {"PUT", strings.Replace(path(write), "/spf_", "/spf_A", 1), []byte("x"), 401, nil},
		"nothing signed":           {"PUT", "/files/spf_d3JpdGUgOTk5OQ.AAAA/a%20b.txt", []byte("x"), 401, nil},
	} {
		if a := anyone.do(c.method, c.path, c.body, c.header...); a.StatusCode != c.status {
			t.Errorf("%s: got %d %s, want %d", name, a.StatusCode, a.body, c.status)
		}
		is(name)
	}
	for _, bad := range []object{
		{"path": "f", "write": true, "max_bytes": -1}, {"path": "f", "write": true, "max_bytes": 6 << 30}, {"path": "in/a b.txt", "max_bytes": 1},
		{"path": "f", "write": true, "expires_seconds": 59}, {"path": "f", "write": true, "expires_seconds": 604801}, {"path": "f/", "write": true}, {"path": "/", "write": true}, {"path": "", "write": true},
	} {
		want[v1.Problem](h, 422, "POST", at+"/links", bad)
	}
	want[v1.Problem](h, 404, "POST", at+"/links", object{"path": "none"})
	if a := h.do("DELETE", at, nil); a.StatusCode != http.StatusNoContent && a.StatusCode != http.StatusOK {
		t.Fatalf("got %d %s", a.StatusCode, a.body)
	}
	if a := anyone.do("PUT", path(write), []byte("late")); a.StatusCode != 404 {
		t.Errorf("after its sandbox: got %d "+strconv.Quote(string(a.body)), a.StatusCode)
	}
}
