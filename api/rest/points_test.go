// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/url"
	"strings"
	"testing"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
)

func TestFilesOfASnapshot(t *testing.T) {
	t.Parallel()
	h := open(t)
	at := "/v1/sandboxes/" + h.create().ID
	for name, content := range map[string]string{"a.txt": "one\ntwo\nthree\n", "d/b.html": "<script>alert(1)</script>", "0": strings.Repeat("x", 3000)} {
		want[any](h, 204, "PUT", at+"/files/"+name, []byte(content))
	}
	snap := want[v1.Snapshot](h, 201, "POST", at+"/snapshots", object{"name": "then"})
	want[any](h, 204, "PUT", at+"/files/a.txt", []byte("one\n2\nthree\n"))
	for _, disk := range []string{at + "/snapshots/then", at + "/snapshots/" + snap.ID, "/v1/snapshots/" + snap.ID, "/v1/snapshots/" + url.PathEscape(*snap.Sandbox+"/then")} {
		a := h.do("GET", disk+"/files/a.txt", nil)
		if a.StatusCode != 200 || string(a.body) != "one\ntwo\nthree\n" || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: got %d %q", disk, a.StatusCode, a.body)
		}
		tag := a.Header.Get("Etag")
		if b := h.do("GET", disk+"/files/?path=/workspace/a.txt", nil, "If-None-Match", tag); len(tag) != 34 || b.StatusCode != 304 {
			t.Errorf("%s: got %d for the tag %s", disk, b.StatusCode, tag)
		}
		for spec, text := range map[string]string{"bytes=4-6": "two", "bytes=-6": "three\n", "bytes=8-": "three\n"} {
			if b := h.do("GET", disk+"/files/a.txt", nil, "Range", spec, "If-Range", tag); b.StatusCode != 206 || string(b.body) != text {
				t.Errorf("%s of %s: got %d %q", spec, disk, b.StatusCode, b.body)
			}
		}
		if b := h.do("GET", disk+"/files/a.txt", nil, "Range", "bytes=100-"); b.StatusCode != 416 {
			t.Errorf("beyond the end: got %d", b.StatusCode)
		}
		if b := h.do("HEAD", disk+"/files/0", nil); b.StatusCode != 200 || b.ContentLength != 3000 {
			t.Errorf("head: got %d %d", b.StatusCode, b.ContentLength)
		}
		if b := h.do("GET", disk+"/files/0", nil); string(b.body) != strings.Repeat("x", 3000) { // in gzip
			t.Errorf("got %d bytes", len(b.body))
		}
		if b := h.do("GET", disk+"/files/d/b.html", nil); b.Header.Get("Content-Disposition") == "" || !strings.HasPrefix(b.Header.Get("Content-Security-Policy"), "sandbox;") {
			t.Errorf("a page: got %v", b.Header)
		}
		var names []string
		for cursor := ""; ; {
			p := want[v1.FilePage](h, 200, "GET", disk+"/files?limit=1&cursor="+url.QueryEscape(cursor), nil)
			for _, f := range p.Items {
				names = append(names, f.Name)
			}
			if p.NextCursor == nil {
				break
			}
			cursor = *p.NextCursor
		}
		if got := strings.Join(names, " "); got != "0 a.txt d" {
			t.Errorf("%s: listed %q", disk, got)
		}
		want[v1.Problem](h, 404, "GET", disk+"/files/never", nil)
		want[v1.Problem](h, 404, "GET", disk+"/files?path=/../../root/.ssh", nil)
		want[v1.Problem](h, 422, "GET", disk+"/files/d", nil)
		want[v1.Problem](h, 422, "GET", disk+"/files?path=a.txt", nil)
		want[v1.Problem](h, 422, "GET", disk+"/files?limit=0", nil)
		want[v1.Problem](h, 422, "GET", disk+"/files?limit=10001", nil)
		other := h.as("other", access.SandboxesRead, access.SandboxesWrite)
		for _, path := range []string{disk + "/files", disk + "/files/a.txt"} {
			want[v1.Problem](other, 404, "GET", path, nil)
		}
	}
	d := want[v1.TextDiff](h, 200, "GET", at+"/diff/text?path=a.txt&from=then", nil)
	if d.Kind != "text" || d.From != "then" || d.To != "now" || d.Added != 1 || d.Removed != 1 || d.FromFile == nil || d.ToFile == nil || len(d.Hunks) != 1 ||
		strings.Join(d.Hunks[0].Lines, "|") != " one|-two|+2| three" || d.Hunks[0].FromLine != 1 || d.Hunks[0].ToLines != 3 {
		t.Errorf("got %+v", d)
	}
	if d := want[v1.TextDiff](h, 200, "GET", at+"/diff/text?path=a.txt", nil); d.From != "base" || d.FromFile != nil || d.Added != 3 {
		t.Errorf("since the image: got %+v", d)
	}
	want[v1.Problem](h, 404, "GET", at+"/diff/text?path=never", nil)
	want[v1.Problem](h, 404, "GET", at+"/diff/text?path=a.txt&from=never", nil)
	want[v1.Problem](h, 422, "GET", at+"/diff/text", nil)
	want[v1.Problem](h.as("other", access.SandboxesRead), 404, "GET", at+"/diff/text?path=a.txt", nil)
	want[v1.Problem](h.as(access.DefaultProject, access.SandboxesWrite), 403, "GET", at+"/diff/text?path=a.txt", nil)
}
