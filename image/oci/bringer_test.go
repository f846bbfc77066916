// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestAProjectPullsWithoutTheOperatorsCredentials(t *testing.T) {
	at := serve(t)
	at.push(t, tarOf(t, file{name: "a", body: "one"}))
	at.first(func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "ops" && password == "secret" {
			return false
		}
		if r.Header.Get("Authorization") != "" {
			t.Errorf("a registry was told %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	name := at.host + "/app:1"
	own := Registry{Name: at.host, Username: "ops", Password: "secret"}
	s := puller(t, at, own)
	if _, err := s.As("team").Pull(t.Context(), name); !fault.Is(err, fault.Denied) {
		t.Errorf("a project: %v", err)
	}
	if _, err := s.As("").Pull(t.Context(), name); err != nil {
		t.Errorf("who runs the server: %v", err)
	}
	if _, err := s.As("team").Pull(t.Context(), name); !fault.Is(err, fault.Denied) {
		t.Errorf("a project, of an image that is here: %v", err)
	}
	own.Projects = true
	if _, err := puller(t, at, own).As("team").Pull(t.Context(), name); err != nil {
		t.Errorf("a project that may use the entry: %v", err)
	}
}

func TestAProjectReachesThePublicInternetAlone(t *testing.T) {
	at := serve(t)
	at.push(t, tarOf(t, file{name: "a", body: "one"}))
	nowhere := func(netip.Addr) bool { return false }
	for name, c := range map[string]struct {
		entry Registry
		ref   string
		do    func(w http.ResponseWriter, r *http.Request) bool
	}{
		"APrivateAddress": {Registry{Name: at.host, Private: true}, at.host + "/app:1", nil},
		"PlainHTTP":       {Registry{Name: at.host, Plain: true, Private: true}, at.host + "/app:1", nil},
		"AMirror":         {Registry{Name: "registry.invalid", Mirrors: []string{at.host}}, "registry.invalid/app:1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := puller(t, at, c.entry)
			s.anonymous.public = nowhere
			var before int
			at.asked.Range(func(any, any) bool { before++; return true })
			if _, err := s.As("team").Pull(t.Context(), c.ref); !fault.Is(err, fault.Denied) && !fault.Is(err, fault.Unavailable) {
				t.Errorf("%v", err)
			}
			after := 0
			at.asked.Range(func(any, any) bool { after++; return true })
			if after != before {
				t.Error("the registry was asked")
			}
		})
	}
	// A public registry that sends a project's request, or the question for a token, to a private address.
	inside := serve(t)
	for name, answer := range map[string]func(w http.ResponseWriter){
		"Redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://10.0.0.1/v2/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"Realm": func(w http.ResponseWriter) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="https://10.0.0.1/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
		"PlainRealm": func(w http.ResponseWriter) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token"`, inside.host))
			w.WriteHeader(http.StatusUnauthorized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := serve(t)
			at.first(func(w http.ResponseWriter, _ *http.Request) bool { answer(w); return true })
			s := puller(t, at, Registry{Name: "10.0.0.1", Private: true}, Registry{Name: inside.host, Plain: true})
			if _, err := s.As("team").Pull(t.Context(), at.host+"/app:1"); !fault.Is(err, fault.Denied) && !fault.Is(err, fault.Unavailable) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAProjectGivesNoNamesThatOthersGave(t *testing.T) {
	s := opened(t)
	bring := func(b Bringer, name, body string) error {
		_, err := b.Import(t.Context(), bytes.NewReader(archiveOf(t, body)), name)
		return err
	}
	for _, step := range []struct {
		as, name, body string
		code           fault.Code
	}{
		{"", "server/app:1", "1", ""},
		{"red", "server/app:1", "2", fault.Denied}, // it would mean another image, for all
		{"red", "red/app:1", "2", ""},
		{"red", "red/app:1", "3", ""},
		{"blue", "red/app:1", "4", fault.Denied},
		{"blue", "red/app:1", "3", fault.Denied}, // said before there is work
		{"", "red/app:1", "5", ""},
		{"red", "red/app:1", "6", fault.Denied}, // it is the server's by now
	} {
		if err := bring(s.As(step.as), step.name, step.body); fault.Of(err) != step.code {
			t.Errorf("%q names %s: %v, want %q", step.as, step.name, err, step.code)
		}
	}
	again, err := Open(Options{Dir: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	if err := bring(again.As("blue"), "red/app:1", "7"); !fault.Is(err, fault.Denied) {
		t.Errorf("after a restart: %v", err)
	}
	if err := bring(again.As("red"), "red/other:1", "8"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestAProjectBringsNoMoreThanItMay(t *testing.T) {
	s := opened(t)
	s.projectBytes = 3 << 20
	big := strings.Repeat("x", 2<<20)
	first, err := s.As("red").Import(t.Context(), bytes.NewReader(archiveOf(t, big+"1")), "red/a:1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.As("red").Import(t.Context(), bytes.NewReader(archiveOf(t, big+"2")), "red/b:1")
	if err == nil {
		t.Fatal("more was taken")
	}
	if n := len(s.List()); n != 1 {
		t.Errorf("%d images are left", n)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, workName)); err != nil || len(left) != 0 {
		t.Errorf("left are %v (%v)", left, err)
	}
	if _, err := s.As("blue").Import(t.Context(), bytes.NewReader(archiveOf(t, big+"3")), "blue/b:1"); err != nil {
		t.Errorf("another project: %v", err)
	}
	if _, err := s.As("").Import(t.Context(), bytes.NewReader(archiveOf(t, big+"4")), ""); err != nil {
		t.Errorf("who runs the server: %v", err)
	}
	if _, err := s.Remove(t.Context(), first[0].Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.As("red").Import(t.Context(), bytes.NewReader(archiveOf(t, big+"2")), ""); err != nil {
		t.Errorf("in place of what is gone: %v", err)
	}
	if _, err := s.As("red").Import(t.Context(), bytes.NewReader(archiveOf(t, big+"5")), ""); err == nil {
		t.Error("what has no name was not counted")
	}
}

// archiveOf is an archive of an image without a name, with one file.
func archiveOf(t *testing.T, body string) []byte {
	t.Helper()
	layer := tarOf(t, file{name: "a", body: body})
	return savedOf(t, "", configOf(t, object{}, layer), layer)
}
