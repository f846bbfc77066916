// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/fault"
)

// plenty is how much a copy out of hostileBox writes at most, in bytes.
const plenty = 1 << 20

// hostileBox is a server whose sandbox has one directory, /d, of which it sends what it likes, with a trailer
// unless that is empty, and the files /huge and /endless.
func hostileBox(t *testing.T, trailer string) (*copier, *bytes.Buffer) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/sandboxes/box/archive", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Sandpit-File-Type", "dir")
		if trailer != "" {
			w.Header().Set("Trailer", v1.LeftOutTrailer)
			defer w.Header().Set(v1.LeftOutTrailer, trailer)
		}
		tw := tar.NewWriter(w)
		for _, h := range []tar.Header{
			{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o755}, {Typeflag: tar.TypeReg, Name: "d/f", Size: 4, Mode: 0o644},
			{Typeflag: tar.TypeReg, Name: "d/../../up", Size: 4, Mode: 0o644}, {Typeflag: tar.TypeSymlink, Name: "d/l", Linkname: "/etc"},
		} {
			if err := tw.WriteHeader(&h); err != nil {
				t.Error(err)
			}
			if h.Size > 0 {
				_, _ = io.WriteString(tw, "evil") // a client that goes away is its own affair
			}
		}
		_ = tw.Close()
	})
	mux.HandleFunc("GET /v1/sandboxes/box/stat", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v1.FileInfo{Path: r.URL.Query().Get("path"), Type: "file", Mode: "0644"}); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("GET /v1/sandboxes/box/files/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("path") == "/huge" { // a file of holes
			w.Header().Set("Content-Length", strconv.FormatInt(1<<62, 10))
			return
		}
		for block := make([]byte, 4096); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	var said bytes.Buffer
	return newCopier(&app.App{Stderr: &said, Stdout: &said}, client.New(s.URL, "token", client.Options{}), "", plenty), &said
}

func TestWhatIsLeftOutIsTold(t *testing.T) {
	for trailer, told := range map[string][]string{
		"":   {"it is not known whether something was left out", "d/../../up", "d/l (a link to /etc)"},
		"[]": {"it is not known whether something was left out"},
		`{"left_out":[{"path":"d/p\u001b","reason":"a fifo"}],"left_out_total":7}`: {"left out: d/p", "left out: 6 more"},
		`{"left_out":[],"left_out_total":0}`:                                       {"d/l (a link to /etc)"},
	} {
		c, said := hostileBox(t, trailer)
		dir := t.TempDir()
		if err := c.result(c.download(t.Context(), []endpoint{{"box", "/d"}}, filepath.Join(dir, "x", "..", "out"))); fmt.Sprint(err) != "exit status 1" {
			t.Errorf("what is left out is told as %v", err)
		}
		for _, text := range told {
			if !strings.Contains(said.String(), text) || strings.Contains(said.String(), "\x1b") {
				t.Errorf("with the trailer %q it said %q, want %q", trailer, said, text)
			}
		}
		all, err := os.ReadDir(dir)
		if err != nil || len(all) != 1 || all[0].Name() != "out" {
			t.Errorf("here are %v, %v", all, err)
		}
	}
}

func TestStandardOutputGetsNoMoreThanAllowed(t *testing.T) {
	for _, from := range []string{"/huge", "/endless"} {
		c, said := hostileBox(t, "")
		if err := c.download(t.Context(), []endpoint{{"box", from}}, "-"); !fault.Is(err, fault.TooLarge) || said.Len() > plenty+1 {
			t.Errorf("%s to standard output: %v after %d bytes, want too_large", from, err, said.Len())
		}
	}
}
