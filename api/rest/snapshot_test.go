// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

// says runs a command and gives what it printed.
func (h *house) says(ref, command string) string {
	h.t.Helper()
	return want[v1.ExecResult](h, 200, "POST", "/v1/sandboxes/"+ref+"/exec", object{"command": command}).Stdout
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "web", "env": object{"SECRET": "hush"}, "memory_mb": 256})
	h.says("web", "echo one > a")
	a := h.do("POST", "/v1/sandboxes/web/snapshots", object{"name": "before 1"})
	first := want[v1.Snapshot](h, 200, "GET", a.Header.Get("Location"), nil)
	if a.StatusCode != 201 || !sandbox.ValidID(first.ID) || *first.Name != "before 1" || *first.Sandbox != s.ID || first.Status != "ready" ||
		first.MemoryMB != 256 || first.Parent != nil || first.Auto || !slices.Equal(first.EnvNames, []string{"SECRET"}) || bytes.Contains(a.body, []byte("hush")) {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
	second := want[v1.Snapshot](h, 201, "POST", "/api/v1/sandboxes/"+s.ID+"/snapshots", nil)
	if second.Name != nil || second.Parent == nil || *second.Parent != first.ID {
		t.Errorf("got %+v, want none's name and %s as parent", second, first.ID)
	}

	t.Run("ANameIsTakenOnce", func(t *testing.T) {
		p := want[v1.Problem](h, 409, "POST", "/v1/sandboxes/web/snapshots", object{"name": "before 1"})
		if p.Code != "exists" || !strings.Contains(p.Detail, "before 1") || !strings.Contains(p.Remedy, "replace") {
			t.Errorf("got %+v", p)
		}
		old := want[v1.Snapshot](h, 201, "POST", "/v1/sandboxes/web/snapshots", object{"name": "moving"})
		next := want[v1.Snapshot](h, 201, "POST", "/v1/sandboxes/web/snapshots", object{"name": "moving", "replace": true})
		if got := want[v1.Snapshot](h, 200, "GET", "/v1/sandboxes/web/snapshots/moving", nil); got.ID != next.ID {
			t.Errorf("got %s, want %s", got.ID, next.ID)
		}
		want[v1.Problem](h, 404, "GET", "/v1/snapshots/"+old.ID, nil)
		want[any](h, 204, "DELETE", "/v1/sandboxes/web/snapshots/moving", nil)
	})
	t.Run("AreFoundByEveryName", func(t *testing.T) {
		for _, path := range []string{
			"/v1/snapshots/" + first.ID, "/v1/snapshots/web%2Fbefore%201", "/v1/snapshots/" + s.ID + "%2Fbefore%201",
			"/v1/sandboxes/web/snapshots/before%201", "/v1/sandboxes/web/snapshots/" + first.ID, "/api/v1/snapshots/" + first.ID,
		} {
			if got := want[v1.Snapshot](h, 200, "GET", path, nil); got.ID != first.ID {
				t.Errorf("%s: got %s", path, got.ID)
			}
		}
	})
	t.Run("AreListed", func(t *testing.T) {
		ids := func(p v1.SnapshotPage) (out []string) {
			for _, s := range p.Items {
				out = append(out, s.ID)
			}
			return out
		}
		for _, path := range []string{"/v1/sandboxes/web/snapshots?", "/v1/snapshots?sandbox=web&", "/v1/snapshots?sandbox=" + s.ID + "&", "/v1/snapshots?"} {
			p := want[v1.SnapshotPage](h, 200, "GET", path, nil)
			if !slices.Equal(ids(p), []string{second.ID, first.ID}) || p.Total != 2 || p.NextCursor != nil {
				t.Errorf("%s: got %+v", path, p)
			}
			p = want[v1.SnapshotPage](h, 200, "GET", path+"sort_order=asc&limit=1", nil)
			if !slices.Equal(ids(p), []string{first.ID}) || p.NextCursor == nil {
				t.Fatalf("%s: got %+v", path, p)
			}
			p = want[v1.SnapshotPage](h, 200, "GET", path+"sort_order=asc&cursor="+*p.NextCursor, nil)
			if !slices.Equal(ids(p), []string{second.ID}) {
				t.Errorf("%s: got %+v", path, p)
			}
		}
	})
	t.Run("AreAnotherProjectsSecret", func(t *testing.T) {
		other := h.as("other", access.SandboxesRead, access.SandboxesWrite)
		for _, r := range [][2]string{
			{"GET", "/v1/snapshots/" + first.ID}, {"GET", "/v1/snapshots/" + first.ID + "/archive"}, {"DELETE", "/v1/snapshots/" + first.ID},
			{"GET", "/v1/sandboxes/web/snapshots"}, {"GET", "/v1/snapshots?sandbox=" + s.ID}, {"POST", "/v1/sandboxes/web/snapshots"},
		} {
			want[v1.Problem](other, 404, r[0], r[1], nil)
		}
		want[v1.Problem](other, 404, "POST", "/v1/sandboxes", object{"from_snapshot": first.ID})
		want[v1.Problem](other, 404, "POST", "/v1/sandboxes/web/rollback", object{"to": first.ID})
		if p := want[v1.SnapshotPage](other, 200, "GET", "/v1/snapshots", nil); p.Total != 0 || p.Items == nil {
			t.Errorf("got %+v, want an empty list", p)
		}
	})
	t.Run("AReaderOnlyReads", func(t *testing.T) {
		reader := h.as("default", access.SandboxesRead)
		want[v1.SnapshotPage](reader, 200, "GET", "/v1/snapshots", nil)
		want[v1.Diff](reader, 200, "GET", "/v1/sandboxes/web/diff", nil)
		for _, r := range [][2]string{
			{"POST", "/v1/sandboxes/web/snapshots"}, {"DELETE", "/v1/snapshots/" + first.ID}, {"POST", "/v1/sandboxes/web/fork"},
			{"POST", "/v1/sandboxes/web/restart"}, {"POST", "/v1/sandboxes/web/pause"}, {"POST", "/v1/sandboxes/web/resume"}, {"DELETE", "/v1/volumes/x"},
		} {
			want[v1.Problem](reader, 403, r[0], r[1], nil)
		}
		want[v1.Problem](reader, 403, "POST", "/v1/sandboxes/web/rollback", object{"to": "base"})
		want[v1.Problem](reader, 403, "POST", "/v1/volumes", object{"name": "v"})
		want[v1.Problem](reader, 403, "POST", "/v1/snapshots/import", []byte("x"))
	})
	t.Run("OneWithANameOutlivesItsSandbox", func(t *testing.T) {
		want[any](h, 204, "DELETE", "/v1/sandboxes/web", nil)
		want[v1.Problem](h, 404, "GET", "/v1/snapshots/"+second.ID, nil)
		p := want[v1.SnapshotPage](h, 200, "GET", "/v1/snapshots?sandbox="+s.ID, nil)
		if p.Total != 1 || p.Items[0].ID != first.ID {
			t.Errorf("got %+v", p)
		}
		again := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"from_snapshot": first.ID})
		if again.MemoryMB != 256 || *again.ParentSnapshot != first.ID || h.says(again.ID, "cat a") != "one\n" {
			t.Errorf("got %+v", again)
		}
	})
}

func TestArchives(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "web", "env": object{"SECRET": "hush-hush"}})
	h.says("web", "echo one > a; mkdir d; echo two > d/b")
	kept := want[v1.Snapshot](h, 201, "POST", "/v1/sandboxes/web/snapshots", object{"name": "before"})

	a := h.do("GET", "/v1/snapshots/web%2Fbefore/archive", nil)
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "application/gzip" || !strings.Contains(a.Header.Get("Content-Disposition"), kept.ID) {
		t.Fatalf("got %d %v", a.StatusCode, a.Header)
	}
	z, err := gzip.NewReader(bytes.NewReader(a.body))
	must(t, err)
	plain, err := io.ReadAll(z)
	must(t, err)
	if bytes.Contains(plain, []byte("hush-hush")) {
		t.Error("the archive tells the sandbox's variables")
	}
	if first, err := tar.NewReader(bytes.NewReader(plain)).Next(); err != nil || first.Name != "sandpit.json" {
		t.Errorf("the archive begins with %v (%v), want sandpit.json", first, err)
	}
	if head := h.do("HEAD", "/v1/snapshots/"+kept.ID+"/archive", nil); head.StatusCode != 200 || len(head.body) != 0 {
		t.Errorf("HEAD: got %d and %d bytes", head.StatusCode, len(head.body))
	}
	p := want[v1.Problem](h, 404, "GET", "/v1/snapshots/web%2Fnever/archive", nil)
	if p.Code != "not_found" {
		t.Errorf("got %+v", p)
	}

	t.Run("ComeBack", func(t *testing.T) {
		r := h.do("POST", "/v1/snapshots/import?name=back", a.body)
		back := want[v1.Snapshot](h, 200, "GET", r.Header.Get("Location"), nil)
		if r.StatusCode != 201 || *back.Name != "back" || back.Sandbox != nil || back.Image != s.Image || len(back.EnvNames) != 0 {
			t.Errorf("got %d %s", r.StatusCode, r.body)
		}
		again := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"from_snapshot": back.ID})
		if got := h.says(again.ID, "cat a d/b"); got != "one\ntwo\n" {
			t.Errorf("got %q", got)
		}
		want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/web/rollback", object{"to": back.ID})
		if got := want[v1.Snapshot](h, 201, "POST", "/v1/snapshots/import?name=other", a.body); *got.Name != "other" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("AreRefusedWhereTheyAreNone", func(t *testing.T) {
		before := want[v1.SnapshotPage](h, 200, "GET", "/v1/snapshots", nil).Total
		for name, body := range map[string][]byte{
			"nothing": {}, "text": []byte("no archive"), "half": a.body[:len(a.body)/2], "gzip of text": gzipped(t, []byte("text")),
			"no manifest":  gzipped(t, tarOf(t, &tar.Header{Name: "root/a", Typeflag: tar.TypeReg}, "")),
			"another form": gzipped(t, tarOf(t, &tar.Header{Name: "sandpit.json", Typeflag: tar.TypeReg}, `{"format":99}`)),
		} {
			p := want[v1.Problem](h, 422, "POST", "/v1/snapshots/import", body)
			if p.Code != "invalid" || p.Detail == "" {
				t.Errorf("%s: got %+v", name, p)
			}
		}
		want[v1.Problem](h, 422, "POST", "/v1/snapshots/import?name=a%2Fb", a.body)
		want[v1.Problem](h, 422, "POST", "/v1/snapshots/import?name=", a.body)
		want[v1.Problem](h, 415, "POST", "/v1/snapshots/import", a.body, "Content-Encoding", "gzip")
		if after := want[v1.SnapshotPage](h, 200, "GET", "/v1/snapshots", nil).Total; after != before {
			t.Errorf("there are %d snapshots, want %d: something came of a refusal", after, before)
		}
	})
	t.Run("HaveABound", func(t *testing.T) {
		small := open(t, func(o *rest.Options) { o.MaxFile = 64 })
		if p := want[v1.Problem](small, 413, "POST", "/v1/snapshots/import", a.body); p.Code != "too_large" {
			t.Errorf("got %+v", p)
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", small.url+"/v1/snapshots/import", io.MultiReader(bytes.NewReader(a.body))) // of a length that is not told
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+adminToken)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("of unknown length: got %d", resp.StatusCode)
		}
	})
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	must(t, errors.Join(err, z.Close()))
	return b.Bytes()
}

func tarOf(t *testing.T, h *tar.Header, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h.Size, h.Mode = int64(len(content)), 0o644
	must(t, w.WriteHeader(h))
	_, err := io.WriteString(w, content)
	must(t, errors.Join(err, w.Close()))
	return b.Bytes()
}
