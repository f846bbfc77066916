// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandpit.dev/console"
)

func get(t *testing.T, path string, headers ...string) *http.Response {
	t.Helper()
	h, err := console.New(console.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) []byte {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestThePageIsNobodysToKeepOrToFrame(t *testing.T) {
	first, second := get(t, "/console/"), get(t, "/console/sandboxes/x/terminal")
	page := string(body(t, first))
	nonce := regexp.MustCompile("nonce=\"([A-Z2-7]{26})\"").FindStringSubmatch(page)
	policy := first.Header.Get("Content-Security-Policy")
	if first.StatusCode != 200 || len(nonce) != 2 || !strings.Contains(policy, "style-src 'self' 'nonce-"+nonce[1]+"';") {
		t.Fatalf("got %d %q %s", first.StatusCode, policy, page)
	}
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s: %s", part, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("the policy is too wide: %s", policy)
	}
	if strings.Contains(string(body(t, second)), nonce[1]) {
		t.Error("two answers have one nonce")
	}
	if first.Header.Get("Cache-Control") != "no-store" || first.Header.Get("Referrer-Policy") != "no-referrer" || first.Header.Get("Cross-Origin-Opener-Policy") != "same-origin" {
		t.Errorf("got %v", first.Header)
	}
}

func TestFramesAreOfPreviewsAlone(t *testing.T) {
	h, err := console.New(console.Options{Frames: func(r *http.Request) string {
		if r.Host != "box.example" {
			return ""
		}
		return "https://*.box.example"
	}})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{"box.example": "https://*.box.example", "other.example": ""} {
		r, w := httptest.NewRequest("GET", "/console/", nil), httptest.NewRecorder()
		r.Host = host
		h.ServeHTTP(w, r)
		policy, page := w.Header().Get("Content-Security-Policy"), w.Body.String()
		if got := strings.Contains(policy, "frame-src "+want+"; default-src 'none'; "); got != (want != "") || strings.Contains(policy, "frame-src") != (want != "") {
			t.Errorf("%s: the policy is %s", host, policy)
		}
		if !strings.Contains(page, `<meta name="frames" content="`+want+`">`) || strings.Contains(page, "{{") {
			t.Errorf("%s: the page is %s", host, page)
		}
	}
}

func TestFilesAreKeptForEver(t *testing.T) {
	page := string(body(t, get(t, "/console/")))
	names := regexp.MustCompile("/console/assets/[A-Za-z0-9.-]+").FindAllString(page, -1)
	if len(names) < 4 {
		t.Fatalf("the page names %q", names)
	}
	if strings.Contains(strings.ReplaceAll(page, "data:,", ""), "//") {
		t.Errorf("the page names another host: %s", page)
	}
	for _, name := range names {
		packed, plain := get(t, name, "Accept-Encoding", "br, gzip;q=0.8"), get(t, name)
		if packed.StatusCode != 200 || packed.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(packed.Header.Get("Cache-Control"), "immutable") || packed.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %d %v", name, packed.StatusCode, packed.Header)
		}
		z, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(text, body(t, plain)) || plain.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: it is not the same without compression: %v", name, err)
		}
	}
	for _, path := range []string{"/console/assets/", "/console/assets/none.js", "/console/assets/../index.html", "/console/assets/index.html"} {
		if r := get(t, path); r.StatusCode != 404 {
			t.Errorf("%s: got %d", path, r.StatusCode)
		}
	}
	if r := get(t, "/console/assets/licences.txt"); r.StatusCode != 200 || !strings.Contains(string(body(t, r)), "MIT") {
		t.Errorf("the licences: got %d", r.StatusCode)
	}
}

// TestTheFirstPageIsSmall holds the sizes of what browsers load, compressed: each with all that it imports by itself, and
// without what was loaded before it.
func TestTheFirstPageIsSmall(t *testing.T) {
	first := []string{"main", "style"}
	for what, c := range map[string]struct {
		of, before []string
		most       int64
	}{
		"the first page": {first, nil, 60 << 10},
		"the terminal":   {[]string{"vendor-terminal", "terminal"}, first, 130 << 10},
		"the editor":     {[]string{"vendor-editor"}, first, 130 << 10},
		"Python":         {[]string{"vendor-python"}, []string{"vendor-editor"}, 70 << 10},
		"JavaScript":     {[]string{"vendor-javascript"}, []string{"vendor-editor"}, 70 << 10},
		"JSON":           {[]string{"vendor-json"}, []string{"vendor-editor"}, 70 << 10},
		"Markdown":       {[]string{"vendor-markdown"}, []string{"vendor-editor"}, 100 << 10},
		"the plots":      {[]string{"vendor-plots"}, first, 25 << 10},
	} {
		all, had := make(map[string]int64), make(map[string]int64)
		for _, name := range c.of {
			loads(t, name+"-*", all)
		}
		for _, name := range c.before {
			loads(t, name+"-*", had)
		}
		var sum int64
		for name, size := range all {
			if _, ok := had[name]; !ok {
				sum += size
			}
		}
		t.Logf("%s: %d bytes", what, sum)
		if sum > c.most || sum == 0 {
			t.Errorf("%s has %d bytes, at most %d", what, sum, c.most)
		}
	}
	files, err := filepath.Glob("dist/*")
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	if t.Logf("all of it: %d bytes", sum); sum > 1500<<10 {
		t.Errorf("all of it has %d bytes", sum)
	}
}

// loads adds what a browser loads with the one file of a pattern: that file, and what it imports as it loads.
func loads(t *testing.T, pattern string, all map[string]int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("dist", pattern+".gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: there are %q, %v", pattern, files, err)
	}
	if _, known := all[files[0]]; known {
		return
	}
	packed, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	all[files[0]] = int64(len(packed))
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?:from|import)"\./([^"]+)"`).FindAllSubmatch(text, -1) {
		loads(t, string(m[1]), all)
	}
}

// TestNothingIsLoadedFromElsewhere reads what was built: no file names another origin as something to load.
func TestNothingIsLoadedFromElsewhere(t *testing.T) {
	files, err := filepath.Glob("dist/*.gz")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.Contains(f, "licences") {
			continue
		}
		packed, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:import|from|url)\s*\(?["']?(?:https?:)?//[^"')]*`).FindAllString(string(text), -1) {
			t.Errorf("%s loads %s", f, m)
		}
	}
}
