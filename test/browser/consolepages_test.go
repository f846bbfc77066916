// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"os"
	"path/filepath"
	"testing"
)

// consolePage is one, or a part of one, as it is where something is there.
type consolePage struct {
	path string // below /console
	has  string // a text that it has once it is read
}

// consolePages are all pages of a server that [furnish] has furnished. Who adds a page adds it here: it is looked at in both themes
// for what keeps people from using it, at 360 pixels, for what it must not show, and by make pictures.
func consolePages() []consolePage {
	return []consolePage{
		{"/sandboxes", "shop"},
		{"/sandboxes/shop", "Use"},
		{"/sandboxes/shop/terminal", "No terminal is open"},
		{"/sandboxes/shop/files", "made.txt"},
		{"/sandboxes/shop/files?file=%2Fworkspace%2Fmade.txt", "Ctrl+S saves"},
		{"/sandboxes/shop/processes", "sh -c"},
		{"/sandboxes/shop/activity", "1 file changed"},
		{"/sandboxes/shop/time", "one"},
		{"/sandboxes/shop/network", "refused.example"},
		{"/sandboxes/shop/ports", "8000"},
		{"/sandboxes/shop/runs", "python"},
		{"/sandboxes/shop/settings", "Processors"},
		{"/images", "the default"},
		{"/images?image=python", "Builds on this server"},
		{"/templates", "web@1"},
		{"/snapshots", "shop"},
		{"/volumes", "data"},
		{"/skills?skill=notes", "# Notes"},
		{"/access", "Signed in"},
		{"/audit", "signIn"},
		{"/overview", "checks passed"},
		{"/settings", "idle_timeout_seconds"},
		{"/connect", "Nobody yet"},
		{"/connect?client=claude-code", "Make the token"},
		{"/nowhere", "There is no such page"},
		{"/sandboxes/none", "none"},
	}
}

// furnish has a server have what pages show.
func furnish(t *testing.T, s *server) {
	t.Helper()
	s.do(t, "create", "--name", "shop", "--label", "team=data", "--env", "A=1")
	s.do(t, "exec", "shop", "--", "sh", "-c", "echo out; echo err >&2; echo x > made.txt")
	s.do(t, "snapshot", "create", "shop", "--name", "one")
	s.do(t, "volume", "create", "data")
	s.do(t, "template", "create", "web", "--start", "sleep 1000", "--detach")
	s.do(t, "code", "shop", "-c", "x = 1")
	s.do(t, "runs", "start", "--follow", "shop", "echo out; echo kept > /artifacts/kept.txt")
	skill := filepath.Join(t.TempDir(), "SKILL.md")
	if err := os.WriteFile(skill, []byte("---\nname: notes\ndescription: Keeps notes.\n---\n\n# Notes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.do(t, "skill", "upload", skill)
	s.do(t, "network", "set", "shop", "restricted", "--allow-domain", "example.org")
	s.do(t, "exec", "shop", "--", "sh", "-c", "python3 -c 'import urllib.request; urllib.request.urlopen(\"http://refused.example/\", timeout=5)' 2>/dev/null || echo refused")
	s.do(t, "exec", "--detach", "shop", "--", "python3", "-m", "http.server", "8000")
	s.do(t, "create", "--name", "an-agent-with-a-long-name-that-says-what-it-is-for", "--label", "team=web")
	s.do(t, "stop", "an-agent-with-a-long-name-that-says-what-it-is-for")
	s.do(t, "fork", "shop", "--name", "shop-again")
}
