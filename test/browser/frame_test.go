// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/test/browser"
)

//go:embed testdata/framed.py
var framed string

// serveFramed has a sandbox serve the page that is to be framed.
func (s *server) serveFramed(t *testing.T, base string) (id string) {
	t.Helper()
	id = strings.TrimSpace(s.do(t, "create", "--name", "hostile"))
	dir := t.TempDir()
	for name, text := range map[string]string{"framed.py": framed, "attack.js": attack} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.do(t, "cp", filepath.Join(dir, name), "hostile:/workspace/"+name)
	}
	s.do(t, "exec", "--detach", "hostile", "--", "python3", "framed.py", base, id)
	for i := 0; !strings.Contains(s.do(t, "ports", "hostile"), "8000"); i++ {
		if i == 600 {
			t.Fatal("the program does not listen")
		}
		time.Sleep(100 * time.Millisecond)
	}
	return id
}

// said is what the framed page found out, once it has.
func (s *server) said(t *testing.T) (of map[string]any) {
	t.Helper()
	deadline := time.Now().Add(bound)
	for time.Now().Before(deadline) {
		out, err := s.command("exec", "hostile", "--", "cat", "said.json").Output()
		if err == nil && json.Unmarshal(out, &of) == nil {
			return of
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatal("the framed page said nothing")
	return nil
}

// frames has a page show an address in a frame, and returns what the page there says, or that the browser refused it.
func (p *person) frames(t *testing.T, address string) string {
	t.Helper()
	p.take()
	await[bool](t, p.tab, `(window.heard = "", addEventListener("message", e => { heard = e.data }), document.body.append(Object.assign(document.createElement("iframe"), {src: %q})), true)`, address)
	deadline := time.Now().Add(bound)
	for time.Now().Before(deadline) {
		if heard := await[string](t, p.tab, "heard"); heard != "" {
			return heard
		}
		for _, c := range p.take() {
			if strings.Contains(c, "frame-ancestors") {
				return "refused"
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the frame neither says anything nor is refused")
	return ""
}

// TestAPreviewInAFrame shows a hostile program's page beside the terminal, and lets it attack the console from there.
func TestAPreviewInAFrame(t *testing.T) {
	p := needBrowser(t)
	named := site(t)
	t.Run("AsShipped", func(t *testing.T) {
		s := serve(t, "origins: ["+named.URL+"]\n")
		framedIn(t, p, s, s.url, named.URL)
	})
	t.Run("BelowTheSameDomain", func(t *testing.T) {
		// The browser takes the preview for a page of the console's site.
		dir, port := t.TempDir(), freePort(t)
		if out, err := exec.Command(bin, "tls", "init", "sandpit.test", "--dir", dir).CombinedOutput(); err != nil {
			t.Fatalf("make a certificate: %v\n%s", err, out)
		}
		s := serve(t, fmt.Sprintf("domain: sandpit.test\norigins: [%[3]s]\ntls: {cert: %[1]s/cert.pem, key: %[1]s/key.pem, listen: \"127.0.0.1:%[2]d\"}\n", dir, port, named.URL))
		near := p
		near.Flags = map[string]any{"host-resolver-rules": "MAP *.sandpit.test 127.0.0.1, MAP sandpit.test 127.0.0.1, " + noWayOut, "ignore-certificate-errors": true}
		framedIn(t, near, s, fmt.Sprintf("https://sandpit.test:%d", port), named.URL)
	})
}

func framedIn(t *testing.T, p browser.Program, s *server, base, named string) {
	one := signed(t, p, base, s.token)
	id := s.serveFramed(t, base)
	if err := browser.Visit(one.tab, base+"/console/sandboxes/hostile/ports"); err != nil {
		t.Fatal(err)
	}
	before := s.standing(t)
	one.clicks("Make a link to port 8000")
	one.presses("Show it here")
	one.until("it is shown", "document.querySelector('iframe[title=\"Preview of port 8000\"]')")
	link := await[string](t, one.tab, "document.querySelector('iframe').src")
	if strings.HasPrefix(link, base) || !strings.Contains(link, "8000-") {
		t.Fatalf("the frame is of %s", link)
	}
	said := s.said(t)
	one.picture("framed")
	t.Logf("the page: %v", said)
	for name, want := range map[string]any{
		"origin": strings.TrimSuffix(link, "/"), "storage": "kept", "own": "its own", "form": "a=1", // what its program needs
		"referrer": "", "document": "SecurityError", "address": "SecurityError", "element": "null", "camera": "false", "fullscreen": "false",
		"leaves": "SecurityError", "replaces": "SecurityError", "tab": "null", "asks": "false",
	} {
		if said[name] != want {
			t.Errorf("%s: the page has %q, want %q", name, said[name], want)
		}
	}
	tried := make(map[string]string)
	for name, got := range said["attack"].(map[string]any) {
		tried[name], _ = got.(string)
	}
	if got := await[string](t, one.tab, "location.pathname + document.querySelectorAll('iframe').length"); got != "/console/sandboxes/hostile/ports1" {
		t.Errorf("the console is at %s", got)
	}
	s.unharmed(t, before, one, base, id, tried)

	// Beside a terminal, where a reload shows it again, and it goes with its link.
	if err := browser.Visit(one.tab, base+"/console/sandboxes/hostile/ports"); err != nil {
		t.Fatal(err)
	}
	one.presses("Beside a terminal")
	one.presses("New terminal")
	one.until("both are there, side by side", "(t => t && document.querySelector('.xterm-rows') && innerWidth >= 1120 === document.querySelector('iframe').getBoundingClientRect().left >= t.getBoundingClientRect().right)(document.querySelector('.xterm-box'))")
	if err := browser.Visit(one.tab, await[string](t, one.tab, "location.href")); err != nil {
		t.Fatal(err)
	}
	one.until("both are there after a reload", "document.querySelector('.xterm-rows') && document.querySelector('iframe')")
	one.picture("framed-beside")

	// Whose page may show it.
	other := one.beside(named)
	if got := other.frames(t, link); got != "a page in a frame" {
		t.Errorf("an origin that the operator named: %s", got)
	}
	other = one.beside(site(t).URL)
	if got := other.frames(t, link); got != "refused" {
		t.Errorf("another origin: %s", got)
	}
	var second struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(s.do(t, "link", "create", "hostile", "8000", "-o", "json")), &second); err != nil {
		t.Fatal(err)
	}
	other = one.beside(strings.Replace(link, link[strings.Index(link, "8000-"):strings.Index(link, ".")], second.URL[strings.Index(second.URL, "8000-"):strings.Index(second.URL, ".")], 1))
	if got := other.frames(t, link); got != "refused" {
		t.Errorf("another preview: %s", got)
	}

	s.do(t, append([]string{"link", "rm", "hostile"}, strings.Fields(s.do(t, "link", "ls", "hostile", "-q"))...)...)
	one.until("it went with its link", "!document.querySelector('iframe')")
}
