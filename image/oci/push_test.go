// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/fault"
)

// saved is a small root that is about to be an archive.
func saved(t *testing.T, text string) *Saving {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	made, err := Save(t.Context(), Rootfs{Dir: dir, Config: Config{Env: []string{"A=1"}, User: "1000:1000"}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestAnImageIsPushedAndPulledAgain(t *testing.T) {
	at := serve(t)
	s := puller(t, at)
	made := saved(t, strings.Repeat("one ", 300_000))
	var last, total int64
	got, err := s.Push(t.Context(), made, at.host+"/team/app:2", func(sent, of int64) {
		if sent < last || sent > of {
			t.Errorf("%d bytes of %d were sent, after %d", sent, of, last)
		}
		last, total = sent, of
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != made.Digest || got.Reference != at.host+"/team/app:2" || got.Sent != got.Size || last != total || total != got.Size {
		t.Errorf("pushed %+v, told %d of %d", got, last, total)
	}
	img, err := s.Pull(t.Context(), at.host+"/team/app:2")
	if err != nil || img.Digest != made.Digest || !strings.HasPrefix(read(t, img, "a"), "one one ") {
		t.Errorf("pulled %+v, %v", img, err)
	}
	if again, err := s.Push(t.Context(), made, at.host+"/team/app:3", nil); err != nil || again.Sent != 0 || again.Digest != made.Digest {
		t.Errorf("again: %+v, %v", again, err)
	}
	for _, bad := range []string{"", "App:1", at.host + "/app@" + made.Digest} {
		if _, err := s.Push(t.Context(), made, bad, nil); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAPushNeverGoesToAMirror(t *testing.T) {
	at, mirror := serve(t), serve(t)
	s := puller(t, at, Registry{Name: at.host, Mirrors: []string{mirror.host}})
	if _, err := s.Push(t.Context(), saved(t, "x"), at.host+"/app:1", nil); err != nil {
		t.Fatal(err)
	}
	mirror.asked.Range(func(path, _ any) bool {
		t.Errorf("the mirror was asked: %v", path)
		return true
	})
}

// A registry that wants a token gets one that may push, and its credentials go nowhere else.
func TestAPushAsksForATokenThatMayPush(t *testing.T) {
	at := serve(t)
	var scopes, refused atomic.Int64
	at.first(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			user, password, _ := r.BasicAuth()
			if user == "ops" && password == "secret" && r.URL.Query().Get("scope") == "repository:app:pull,push" {
				scopes.Add(1)
			}
			fmt.Fprint(w, `{"token":"may-push"}`)
			return true
		}
		if r.Header.Get("Authorization") != "Bearer may-push" {
			refused.Add(1)
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, at.URL))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	})
	s := puller(t, at, Registry{Name: at.host, Username: "ops", Password: "secret"})
	if _, err := s.Push(t.Context(), saved(t, "x"), at.host+"/app:1", nil); err != nil {
		t.Fatal(err)
	}
	if scopes.Load() != 1 || refused.Load() != 1 {
		t.Errorf("%d tokens for pushing, %d refusals", scopes.Load(), refused.Load())
	}
}

func TestATokenThatEndsInTheMiddleIsRenewed(t *testing.T) {
	at := serve(t)
	var tokens atomic.Int64
	at.first(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			fmt.Fprintf(w, `{"token":"t%d"}`, tokens.Add(1))
			return true
		}
		want := "Bearer t1"
		if r.Method == http.MethodPut {
			want = "Bearer t2" // the first has ended by then
		}
		if got := r.Header.Get("Authorization"); got != want && (r.Method == http.MethodPut || got != "Bearer t2") {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token"`, at.URL))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	})
	s := puller(t, at)
	if _, err := s.Push(t.Context(), saved(t, strings.Repeat("x", 1<<20)), at.host+"/app:1", nil); err != nil {
		t.Fatal(err)
	}
	if n := tokens.Load(); n != 2 {
		t.Errorf("%d tokens, want 2", n)
	}
}

func TestPlacesThatARegistryNamesAreChecked(t *testing.T) {
	other := serve(t)
	for name, c := range map[string]struct {
		location func(at *served) string
		code     fault.Code
		says     string
	}{
		"PlainHTTP":       {func(at *served) string { return "http://" + at.host + "/x" }, fault.Unavailable, "not https"},
		"APrivateAddress": {func(*served) string { return "https://10.0.0.1/x" }, fault.Denied, "public internet"},
		"TheCloudsOwn":    {func(*served) string { return "https://169.254.169.254/latest" }, fault.Denied, "public internet"},
		"AUser":           {func(at *served) string { return "https://a:b@" + at.host + "/x" }, fault.Unavailable, "a user in it"},
		"None":            {func(*served) string { return "" }, fault.Unavailable, "does not say where"},
		"AFile":           {func(*served) string { return "file:///etc/passwd" }, fault.Unavailable, ""},
		"AnotherRegistry": {func(*served) string { return other.URL + "/elsewhere" }, fault.Denied, ""},
		"ARelativeOne":    {func(*served) string { return "/v2/app/blobs/uploads/some" }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := serve(t)
			at.first(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost {
					return false
				}
				if l := c.location(at); l != "" {
					w.Header().Set("Location", l)
				}
				w.WriteHeader(http.StatusAccepted)
				return true
			})
			other.first(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Authorization") != "" {
					t.Error("another host was told who asks")
				}
				w.WriteHeader(http.StatusForbidden)
				return true
			})
			s := puller(t, at, Registry{Name: at.host, Username: "ops", Password: "secret"})
			s.remote.keep(s.remote.origin(Reference{Registry: at.host, Repository: "app"}), pushing, "Basic secret", time.Hour)
			_, err := s.Push(t.Context(), saved(t, "x"), at.host+"/app:1", nil)
			if fault.Of(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s that says %q", err, c.code, c.says)
			}
		})
	}
}

func TestAnUploadThatBreaksOffIsSentAgain(t *testing.T) {
	at := serve(t)
	var puts, dropped atomic.Int64
	at.first(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodDelete:
			dropped.Add(1)
			w.WriteHeader(http.StatusNoContent)
			return true
		case r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/uploads/") && puts.Add(1) < 3:
			_, _ = io.CopyN(io.Discard, r.Body, 100_000)
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
			return true
		}
		return false
	})
	s := puller(t, at)
	before := runtime.NumGoroutine()
	got, err := s.Push(t.Context(), saved(t, strings.Repeat("x", 1<<20)), at.host+"/app:1", nil)
	if err != nil || got.Sent != got.Size || puts.Load() < 3 || dropped.Load() != 2 {
		t.Errorf("%+v, %v: %d uploads, %d dropped", got, err, puts.Load(), dropped.Load())
	}
	s.remote.close()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+2 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before+2 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

func TestWhatARegistryAnswersToAPush(t *testing.T) {
	for status, code := range map[int]fault.Code{403: fault.Denied, 404: fault.Denied, 413: fault.Exhausted, 429: fault.Exhausted, 400: fault.Denied, 503: fault.Unavailable} {
		at := serve(t)
		at.first(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead {
				return false
			}
			w.WriteHeader(status)
			return true
		})
		if _, err := puller(t, at).Push(t.Context(), saved(t, "x"), at.host+"/app:1", nil); fault.Of(err) != code {
			t.Errorf("%d: %v, want %s", status, err, code)
		}
	}
	at := serve(t)
	at.first(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Docker-Content-Digest", digestOf([]byte("another")))
			w.WriteHeader(http.StatusCreated)
			return true
		}
		return false
	})
	if _, err := puller(t, at).Push(t.Context(), saved(t, "x"), at.host+"/app:1", nil); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "has taken") {
		t.Errorf("a manifest that is another one there: %v", err)
	}
}

func TestAPushEndsWithItsCaller(t *testing.T) {
	at := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	at.first(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
			cancel()
			_, _ = io.Copy(io.Discard, r.Body)
			return true
		}
		return false
	})
	if _, err := puller(t, at).Push(ctx, saved(t, strings.Repeat("x", 8<<20)), at.host+"/app:1", nil); err == nil || fault.Is(err, fault.Denied) {
		t.Errorf("%v", err)
	}
}

func TestAnImageThatChangesIsNotPushed(t *testing.T) {
	at := serve(t)
	made := saved(t, "before")
	if err := os.WriteFile(filepath.Join(made.root.Dir, "a"), []byte("after!"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := puller(t, at).Push(t.Context(), made, at.host+"/app:1", nil); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v", err)
	}
}
