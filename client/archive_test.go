// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestArchives(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	s, _, err := h.Create(ctx, v1.CreateSandbox{})
	must(t, err)
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	var in bytes.Buffer
	w := tar.NewWriter(&in)
	big := strings.Repeat("sandpit ", 1<<18)
	for _, e := range []struct {
		tar.Header
		content string
	}{
		{tar.Header{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o750, ModTime: old}, ""},
		{tar.Header{Typeflag: tar.TypeReg, Name: "d/ü", Mode: 0o640, ModTime: old}, "text"},
		{tar.Header{Typeflag: tar.TypeReg, Name: "d/big", Mode: 0o640, ModTime: old}, big},
		{tar.Header{Typeflag: tar.TypeSymlink, Name: "d/l", Linkname: "ü", ModTime: old}, ""},
		{tar.Header{Typeflag: tar.TypeReg, Name: "../ü\n", Mode: 0o640}, "evil"},
	} {
		e.Size = int64(len(e.content))
		must(t, w.WriteHeader(&e.Header))
		_, err := io.WriteString(w, e.content)
		must(t, err)
	}
	must(t, w.Close())
	sum, err := h.UnpackFiles(ctx, s.ID, "new", &in, client.UnpackOptions{Sync: true, Outcomes: true})
	must(t, err)
	if sum.Entries != 5 || sum.Bytes != int64(4+len(big)) || sum.LeftOutTotal != 1 || len(sum.LeftOut) != 1 || sum.LeftOut[0].Path != "../ü?" {
		t.Errorf("got %+v", sum)
	}
	if len(sum.Outcomes) != 5 || sum.Outcomes[2] != (v1.Outcome{Path: "d/big", Bytes: int64(len(big))}) || sum.Outcomes[4].Reason == "" {
		t.Errorf("outcomes %+v", sum.Outcomes)
	}
	_, err = h.Exec(ctx, s.ID, v1.Exec{Command: new("mkfifo 'new/d/pipe ü'")})
	must(t, err)
	a, err := h.PackFiles(ctx, s.ID, "new/d", client.PackOptions{Exclude: []string{"l"}})
	must(t, err)
	defer a.Close()
	got := make(map[string]string)
	for r := tar.NewReader(a); ; {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		if got[e.Name] = string(content); e.Mode != 0o640 && e.Mode != 0o750 || !strings.HasSuffix(e.Name, "/") && !e.ModTime.Equal(old) {
			t.Errorf("got %+v", e)
		}
	}
	_, err = io.Copy(io.Discard, a)
	must(t, err)
	if len(got) != 3 || got["d/ü"] != "text" || got["d/big"] != big || a.Type != "dir" {
		t.Errorf("got a %s of %d entries", a.Type, len(got))
	}
	if first, all := a.LeftOut(); all != 1 || len(first) != 1 || first[0] != (v1.LeftOut{Path: "d/pipe ü", Reason: "a fifo"}) {
		t.Errorf("left out: %d, %v", all, first)
	}
	var kinds []string
	for ev, err := range h.Activity(ctx, s.ID, client.ActivityQuery{Oldest: true}) {
		must(t, err)
		if !strings.HasPrefix(ev.Type, "file.") {
			continue
		}
		kinds = append(kinds, ev.Type+" "+ev.Path)
		if ev.Size == nil || *ev.Size < int64(len(big)) {
			t.Errorf("%s has %v bytes", ev.Type, ev.Size)
		}
	}
	if strings.Join(kinds, ",") != "file.upload new,file.download new/d" {
		t.Errorf("the record is %q", kinds)
	}
	if _, err := h.PackFiles(ctx, s.ID, "none", client.PackOptions{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := h.UnpackFiles(ctx, s.ID, ".", strings.NewReader(strings.Repeat("text", 1000)), client.UnpackOptions{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("of text: %v", err)
	}
}

func TestAnOlderServerHasNoArchives(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"paths":{"/sandboxes/{id}":{}}}`) // a client that goes away is its own affair
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	c := client.New(s.URL, "token", client.Options{})
	_, err := c.PackFiles(t.Context(), "box", ".", client.PackOptions{})
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "older") {
		t.Errorf("out: %v", err)
	}
	if _, err = c.UnpackFiles(t.Context(), "box", ".", strings.NewReader(""), client.UnpackOptions{}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("in: %v", err)
	}
}

func TestFilesAreFoundChangedAndLinked(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	s, _, err := h.Create(ctx, v1.CreateSandbox{})
	must(t, err)
	must(t, h.WriteFile(ctx, s.ID, "d/e/f.txt", strings.NewReader("one two"), client.WriteOptions{Attributes: map[string]string{"k": "v=1,b"}}))
	info, err := h.Stat(ctx, s.ID, "d/e/f.txt", "")
	must(t, err)
	if info.Attributes["k"] != "v=1,b" {
		t.Errorf("got %+v", info)
	}
	changed, err := h.ChangeFile(ctx, s.ID, "d", "", v1.ChangeFile{Mode: new("0700"), Recursive: true})
	must(t, err)
	if changed.Changed != 3 || changed.File.Mode != "0700" {
		t.Errorf("changed %+v", changed)
	}
	tree, more, err := h.ListTree(ctx, s.ID, ".", "", 3, "d", 1)
	must(t, err)
	if len(tree) != 1 || tree[0].Path != "/workspace/d/e" || !more {
		t.Errorf("the tree goes on with %+v, %v", tree, more)
	}
	found, err := h.FindFiles(ctx, s.ID, ".", client.FindQuery{Glob: "*.txt", Depth: 3, Limit: 5})
	must(t, err)
	if len(found.Files) != 1 || found.Files[0].Name != "f.txt" {
		t.Errorf("found %+v", found)
	}
	lines, err := h.SearchFiles(ctx, s.ID, "d", "TWO", client.SearchQuery{Literal: true, IgnoreCase: true, Glob: "*.txt"})
	must(t, err)
	if len(lines.Matches) != 1 || lines.Matches[0].Text != "one two" {
		t.Errorf("found %+v", lines)
	}
	replaced, err := h.ReplaceInFiles(ctx, s.ID, v1.ReplaceInFiles{Files: []string{"d/e/f.txt", "none"}, Pattern: "two", Replacement: strings.Repeat("2", 2000)})
	must(t, err)
	if replaced.Changed != 1 || replaced.Failed != 1 {
		t.Errorf("replaced %+v", replaced)
	}
	f, err := h.ReadFile(ctx, s.ID, "d/e/f.txt", client.ReadOptions{})
	must(t, err)
	defer f.Close()
	if content, err := io.ReadAll(f); err != nil || len(content) != 2004 || f.Size != 2004 {
		t.Errorf("read %d bytes of %d: %v", len(content), f.Size, err)
	}
	if _, err := h.LinkFile(ctx, s.ID, v1.CreateFileLink{Path: "d/e/f.txt"}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("a server without links: %v", err)
	}
}
