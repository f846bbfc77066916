// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/test/browser"
)

// hostile is a program whose page tries what it must not be able to, and what it must.
//
//go:embed testdata/hostile.py
var hostile string

// TestAPreviewByPathIsNoPageOfTheServer opens a hostile program's page below the server's own address, where no preview has
// a host name.
func TestAPreviewByPathIsNoPageOfTheServer(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "preview: {domain: none}\n")
	s.do(t, "create", "--name", "hostile")
	program := filepath.Join(t.TempDir(), "hostile.py")
	if err := os.WriteFile(program, []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	s.do(t, "cp", program, "hostile:/workspace/hostile.py")
	s.do(t, "exec", "--detach", "hostile", "--", "python3", "hostile.py")
	for i := 0; !strings.Contains(s.do(t, "ports", "hostile"), "8000"); i++ {
		if i == 600 {
			t.Fatal("the program does not listen")
		}
		time.Sleep(100 * time.Millisecond)
	}
	var link struct {
		PathURL string `json:"path_url"`
	}
	if err := json.Unmarshal([]byte(s.do(t, "preview", "hostile", "8000", "-o", "json")), &link); err != nil {
		t.Fatal(err)
	}

	ctx := tab(t, p, link.PathURL, nil)
	if got := await[string](t, ctx, "location.pathname"); !strings.HasPrefix(got, "/preview/spp_") {
		t.Fatalf("the browser is at %s", got)
	}
	got := await[map[string]string](t, ctx, "tried")
	for name, want := range map[string]string{
		"origin": "null", "script": "ran", "module": "ran", "style": "rgb(1, 2, 3)", "image": "loaded", "fetch": "200 relative", "post": "200 {\"a\":1}", "frame": "null",
		"cookie": "SecurityError", "storage": "SecurityError", "worker": "SecurityError", "database": "SecurityError", "api": "TypeError", "front": "TypeError", "other": "TypeError",
	} {
		if got[name] != want {
			t.Errorf("%s: the page has %q, want %q", name, got[name], want)
		}
	}
	if t.Failed() {
		t.Logf("the page: %v", got)
	}
	// A page of the server's own that is open beside it, and one that is opened later, have nothing of it.
	if err := browser.Visit(ctx, s.url+"/connect"); err != nil {
		t.Fatal(err)
	}
	if got := await[string](t, ctx, "document.cookie"); got != "" {
		t.Errorf("a page of the server's has the cookies %q", got)
	}
	if got := await[int](t, ctx, "navigator.serviceWorker.getRegistrations().then(all => all.length)"); got != 0 {
		t.Errorf("%d service workers see the server's pages", got)
	}
}

// do runs a command, which must pass, and returns its output.
func (s *server) do(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	cmd := s.commandContext(ctx, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("sandpit %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
