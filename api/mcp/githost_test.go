// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"iter"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"sandpit.dev/engine"
)

// gitHost serves one repository by HTTP, to the user u with the password s3cret.
type gitHost struct {
	url     string
	handler http.Handler
	told    atomic.Int64 // how often another host was asked
	leaked  atomic.Bool  // that one was given a password
}

func newGitHost(t *testing.T) *gitHost {
	t.Helper()
	dir := t.TempDir()
	git := func(in string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	work := filepath.Join(dir, "work")
	git(dir, "init", "-q", "-b", "main", work)
	if err := os.WriteFile(filepath.Join(work, "f"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git(work, "add", "f")
	git(work, "commit", "-qm", "one")
	git(dir, "clone", "-q", "--bare", work, "app.git")

	g := &gitHost{}
	other := newPlainServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.told.Add(1)
		if r.Header.Get("Authorization") != "" {
			g.leaked.Store(true)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="other"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: program, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	g.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/elsewhere.git") {
			http.Redirect(w, r, other+r.URL.RequestURI(), http.StatusFound)
			return
		}
		if user, password, _ := r.BasicAuth(); user != "u" || password != "s3cret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	})
	g.url = newPlainServer(t, g.handler)
	return g
}

// events returns all that the record has of what commands there were, as text.
func (h *house) events(ref string) iter.Seq[string] {
	h.t.Helper()
	page, _, err := h.engine.Activity(h.t.Context(), callers["t-alice"], ref, engine.ActivityRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	return func(yield func(string) bool) {
		for _, ev := range page {
			if !yield(ev.Command + " " + ev.Detail) {
				return
			}
		}
	}
}
