// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/fault"
)

// plenty is how much a download of hostileBox writes at most, in bytes.
const plenty = 1 << 20

// entriesAtOnce is how many entries of a directory hostileBox lists.
const entriesAtOnce = 10

// hostileBox is a server whose sandbox has one directory, /d, with these
// entries, and answers every other path with the content "evil"; /d/huge says that it is
// huge, and /d/endless goes on.
func hostileBox(t *testing.T, entries ...v1.FileInfo) (*transfer, *bytes.Buffer) {
	t.Helper()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/sandboxes/box/stat", func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.Query().Get("path")
		info := v1.FileInfo{Path: p, Type: "file", Mode: "0644"}
		if path.Clean(p) == "/d" {
			info.Type, info.Mode = "dir", "0755"
		}
		answer(w, info)
	})
	mux.HandleFunc("GET /v1/sandboxes/box/files", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("path") != "/d" {
			answer(w, []v1.FileInfo{})
			return
		}
		page := entries
		if after := r.URL.Query().Get("after"); after != "" {
			page = page[slices.IndexFunc(page, func(f v1.FileInfo) bool { return f.Name == after })+1:]
		}
		if len(page) > entriesAtOnce {
			page = page[:entriesAtOnce]
			w.Header().Set("Sandpit-Truncated", "true")
		}
		answer(w, page)
	})
	mux.HandleFunc("GET /v1/sandboxes/box/files/", func(w http.ResponseWriter, r *http.Request) {
		switch path.Base(r.URL.Query().Get("path")) {
		case "cut":
			w.Header().Set("Content-Length", "1000")
		case "huge": // a file of holes
			w.Header().Set("Content-Length", strconv.FormatInt(1<<62, 10))
		case "endless":
			for block := make([]byte, 4096); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}
		_, _ = w.Write([]byte("evil")) // a client that goes away is its own affair
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	var said bytes.Buffer
	a := &app{stderr: &said, stdout: &said}
	return &transfer{a: a, cl: client.New(s.URL, "token", client.Options{}), ref: "box", bar: progress.New(&said), most: plenty, left: plenty}, &said
}

// tree lists what is below a directory, with the content of files.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		got[rel] = info.Mode().String()
		if d.Type().IsRegular() {
			b, err := os.ReadFile(p)
			got[rel] += " " + string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDownload(t *testing.T) {
	file := func(name string) v1.FileInfo { return v1.FileInfo{Name: name, Type: "file", Mode: "0644"} }

	t.Run("NamesThatLeaveTheDirectoryAreLeftOut", func(t *testing.T) {
		tr, said := hostileBox(t, file("../up"), file(".."), file("/etc/evil"), file("a/b"), file(""), file("fine"),
			v1.FileInfo{Name: "link", Type: "symlink", Target: "/etc"}, v1.FileInfo{Name: "dev", Type: "other"})
		dir := t.TempDir()
		if err := tr.download(t.Context(), "/d", filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"out": "drwxr-xr-x", "out/fine": "-rw-r--r-- evil"}
		if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
			t.Errorf("what is here is not what should be (-want +got):\n%s", diff)
		}
		if got := strings.Count(said.String(), "left out: "); got != 7 {
			t.Errorf("%d things are said to be left out, want 7:\n%s", got, said)
		}
	})

	t.Run("LinksThatStayBelowAreKept", func(t *testing.T) {
		link := func(name, target string) v1.FileInfo { return v1.FileInfo{Name: name, Type: "symlink", Target: target} }
		old := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
		aged := v1.FileInfo{Name: "aged", Type: "file", Mode: "4640", ModifiedAt: old}
		sub := v1.FileInfo{Name: "sub", Type: "dir", Mode: "0510", ModifiedAt: old}
		tr, said := hostileBox(t, aged, sub, link("in", "./aged"), link("here", "."), link("deep", "sub/x//y"), link("gone", "no/such"),
			link("up", ".."), link("upin", "../out/aged"), link("round", "here/../.."), link("rounder", "here/.."), link("root", "/"),
			link("empty", ""), link("nul", "a\x00b"), link("odd", `a\xff`))
		dir := t.TempDir()
		if err := tr.result(tr.download(t.Context(), "/d", filepath.Join(dir, "out"))); fmt.Sprint(err) != "exit status 1" {
			t.Errorf("what is left out is told as %v", err)
		}
		got := map[string]string{}
		for name := range tree(t, filepath.Join(dir, "out")) {
			got[name], _ = os.Readlink(filepath.Join(dir, "out", name)) // of a file: empty
		}
		want := map[string]string{"aged": "", "sub": "", "in": "./aged", "here": ".", "deep": "sub/x//y", "gone": "no/such"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what is here is not what should be (-want +got):\n%s", diff)
		}
		if got := strings.Count(said.String(), "left out: "); got != 8 {
			t.Errorf("%d things are said to be left out, want 8:\n%s", got, said)
		}
		for name, mode := range map[string]string{"aged": "-rw-r-----", "sub": "drwx--x---"} {
			info, err := os.Stat(filepath.Join(dir, "out", name))
			if err != nil || info.Mode().String() != mode || !info.ModTime().Equal(old) {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
	})

	t.Run("LinksGoUpNoFurtherThanTheTop", func(t *testing.T) {
		for dir, links := range map[string]map[string]bool{
			".":   {"a": true, "..": false, "./..": false, "a/..": false, "a/../b": false},
			"a":   {"..": true, "../b": true, ".././b/.": true, "../..": false, "../b/..": false},
			"a/b": {"../..": true, "../../c": true, "../../../c": false, "../a/../..": false},
		} {
			for target, want := range links {
				if got := staysBelow(dir, target); got != want {
					t.Errorf("%s in %s: %v", target, dir, got)
				}
			}
		}
	})

	t.Run("ALongDirectoryComesInPages", func(t *testing.T) {
		var all []v1.FileInfo
		want := map[string]string{"out": "drwxr-xr-x"}
		for i := range 2*entriesAtOnce + 3 {
			name := fmt.Sprintf("f%02d", i)
			all = append(all, file(name))
			want["out/"+name] = "-rw-r--r-- evil"
		}
		tr, _ := hostileBox(t, all...)
		dir := t.TempDir()
		if err := tr.download(t.Context(), "/d", filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
			t.Errorf("what is here is not what should be (-want +got):\n%s", diff)
		}
	})

	t.Run("ListsThatDoNotGoOnEnd", func(t *testing.T) {
		same := make([]v1.FileInfo, 3*entriesAtOnce)
		for i := range same {
			same[i] = file("same")
		}
		tr, _ := hostileBox(t, same...)
		if err := tr.download(t.Context(), "/d", filepath.Join(t.TempDir(), "out")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("LinksThatAreHereAreNotFollowed", func(t *testing.T) {
		tr, _ := hostileBox(t, file("f"))
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "precious"), []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "out"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../precious", filepath.Join(dir, "out", "f")); err != nil {
			t.Fatal(err)
		}
		if err := tr.download(t.Context(), "/d/f", filepath.Join(dir, "out", "f")); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"precious": "-rw------- precious", "out": "drwxr-xr-x", "out/f": "-rw-r--r-- evil"}
		if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
			t.Errorf("what is here is not what should be (-want +got):\n%s", diff)
		}
	})

	t.Run("ALinkInPlaceOfADirectoryIsAnError", func(t *testing.T) {
		tr, _ := hostileBox(t, v1.FileInfo{Name: "sub", Type: "dir"})
		dir := t.TempDir()
		for _, name := range []string{"outside", "d"} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("../outside", filepath.Join(dir, "d", "sub")); err != nil {
			t.Fatal(err)
		}
		if err := tr.download(t.Context(), "/d", dir); err == nil {
			t.Error("the link was taken for a directory")
		}
	})

	t.Run("NoSetUserIDBitSurvives", func(t *testing.T) {
		tr, _ := hostileBox(t, v1.FileInfo{Name: "suid", Type: "file", Mode: "6755"}, v1.FileInfo{Name: "odd", Type: "file", Mode: "lots"})
		dir := t.TempDir()
		if err := tr.download(t.Context(), "/d", dir); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"d": "drwxr-xr-x", "d/suid": "-rwxr-xr-x evil", "d/odd": "-rw-r--r-- evil"}
		if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
			t.Errorf("what is here is not what should be (-want +got):\n%s", diff)
		}
	})

	t.Run("NoMoreIsWrittenThanAllowed", func(t *testing.T) {
		many := make([]v1.FileInfo, 20)
		for i := range many {
			many[i] = file(fmt.Sprintf("f%02d", i))
		}
		for _, c := range []struct {
			name    string
			from    string
			entries []v1.FileInfo
			most    int64
			says    string
			left    int // entries here afterwards
		}{
			{"AFileOfHoles", "/d/huge", nil, plenty, "its 4294967296.0 GiB", 0},
			{"AFileThatDoesNotEnd", "/d/endless", nil, plenty, "what it still sends", 0},
			{"OneInADirectory", "/d", []v1.FileInfo{file("a"), file("huge"), file("z")}, plenty, "its 4294967296.0 GiB", 2},
			{"ManyEntries", "/d", many, 6 * entryCost, "one entry more", 5}, // their content counts, too
			{"ADirectoryInIt", "/d", []v1.FileInfo{{Name: "sub", Type: "dir"}}, 2*entryCost - 1, "one entry more", 1},
			{"TheDirectoryItself", "/d", nil, entryCost - 1, "one entry more", 0},
			{"AFileThatJustFits", "/d/f", nil, entryCost + 4, "", 1},
			{"OneByteLess", "/d/f", nil, entryCost + 3, "its 4 B", 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				tr, _ := hostileBox(t, c.entries...)
				tr.most, tr.left = c.most, c.most
				dir := t.TempDir()
				err := tr.download(t.Context(), c.from, filepath.Join(dir, "out"))
				if c.says == "" && err != nil || c.says != "" && (!fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("got %v, want too_large with %q", err, c.says)
				}
				if got := tree(t, dir); len(got) != c.left {
					t.Errorf("here are %v, want %d entries", got, c.left)
				}
			})
		}
		for _, from := range []string{"/d/huge", "/d/endless"} {
			tr, said := hostileBox(t)
			if err := tr.download(t.Context(), from, "-"); !fault.Is(err, fault.TooLarge) || said.Len() > plenty+1 {
				t.Errorf("%s to standard output: %v after %d bytes, want too_large", from, err, said.Len())
			}
		}
	})

	t.Run("AFileThatBreaksOffLeavesNothing", func(t *testing.T) {
		tr, _ := hostileBox(t, file("cut"))
		dir := t.TempDir()
		err := tr.download(t.Context(), "/d/cut", filepath.Join(dir, "cut"))
		if err == nil || !strings.Contains(err.Error(), "broke off after") {
			t.Errorf("got %v, want that it broke off", err)
		}
		if got := tree(t, dir); len(got) != 0 {
			t.Errorf("left behind: %v", got)
		}
	})
}
