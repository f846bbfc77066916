// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"sandpit.dev/test/browser"
)

//go:embed testdata/attack.js
var attack string

// signed opens the browser, signed in with a token.
func signed(t *testing.T, p browser.Program, address, token string) *person {
	t.Helper()
	one := visit(t, p, address+"/console/")
	one.fills("Token", token)
	one.presses("Sign in")
	one.until("somebody is signed in", "document.querySelector('header .who')")
	one.take()
	return one
}

// beside is another tab of the same browser, with the same cookies.
func (p *person) beside(address string) *person {
	p.t.Helper()
	other := &person{t: p.t, complaints: new(complaints)}
	p.t.Cleanup(func() { other.stayed(p.t) })
	tab, done, err := browser.Another(p.tab, other.hear)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(done)
	other.tab = tab
	if err := browser.Visit(tab, address); err != nil {
		p.t.Fatal(err)
	}
	return other
}

// runHostile has a sandbox serve the hostile program, and returns a link to it.
func runHostile(t *testing.T, s *server) (id, hostURL, pathURL string) {
	t.Helper()
	id = strings.TrimSpace(s.do(t, "create", "--name", "hostile"))
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
		URL     string `json:"url"`
		PathURL string `json:"path_url"`
	}
	if err := json.Unmarshal([]byte(s.do(t, "preview", "hostile", "8000", "-o", "json")), &link); err != nil {
		t.Fatal(err)
	}
	return id, link.URL, link.PathURL
}

// attacked runs the attack in a page, and finds out that it read nothing, made nothing and ended nothing.
func attacked(t *testing.T, s *server, console, page *person, base, id string, worker bool) {
	t.Helper()
	before := s.standing(t)
	tried := await[map[string]string](t, page.tab, "(%s)(%q, %q, %t)", attack, base, id, worker)
	t.Logf("the page: %v", tried)
	s.unharmed(t, before, console, base, id, tried)
}

// standing is what an attack is to leave as it is: the sandboxes and the sessions.
func (s *server) standing(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("sandboxes %q, sessions %q", s.sandboxes(t), s.do(t, "session", "ls", "-q"))
}

// unharmed finds out that an attack ran to its end, got nothing, and left what there was before it as it was.
func (s *server) unharmed(t *testing.T, before string, console *person, base, id string, tried map[string]string) {
	t.Helper()
	if tried["fetch"] == "" || tried["window"] == "" || tried["socket"] == "" {
		t.Fatalf("the attack did not run to its end: %v", tried)
	}
	for name, got := range tried {
		switch {
		case strings.Contains(got, id), strings.Contains(got, "hostile"), strings.HasPrefix(got, "20"), got == "open", got == "begun", got == "loaded":
			t.Errorf("%s: the page has %q", name, got)
		}
	}
	if after := s.standing(t); after != before {
		t.Errorf("there were %s, and are %s", before, after)
	}
	// The same calls by a script of the console's own, in the same browser and after all of that, are answered: it was not the want
	// of a session that refused them.
	if got := await[string](t, console.tab, `fetch("/v1/sandboxes").then(async r => r.status + " " + await r.text())`); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, id) {
		t.Errorf("the console reads %.200s", got)
	}
	if err := browser.Visit(console.tab, base+"/console/sandboxes"); err != nil {
		t.Fatal(err)
	}
	console.reads("hostile")
	if got := await[string](t, console.tab, "document.cookie"); strings.Contains(got, "__Host") {
		t.Errorf("the console's page has the cookies %q", got)
	}
}

// TestPagesOfOthersDoNothing attacks somebody who is signed in, from all places where pages of others can be.
func TestPagesOfOthersDoNothing(t *testing.T) {
	p := needBrowser(t)
	t.Run("BelowTheSameDomain", func(t *testing.T) {
		// The strongest place: by TLS the preview is of the same site as the console, so that the browser sends it the cookie.
		dir, port := t.TempDir(), freePort(t)
		if out, err := exec.Command(bin, "tls", "init", "sandpit.test", "--dir", dir).CombinedOutput(); err != nil {
			t.Fatalf("make a certificate: %v\n%s", err, out)
		}
		s := serve(t, fmt.Sprintf("domain: sandpit.test\ntls: {cert: %[1]s/cert.pem, key: %[1]s/key.pem, listen: \"127.0.0.1:%[2]d\"}\n", dir, port))
		secure := fmt.Sprintf("https://sandpit.test:%d", port)
		near := p
		near.Flags = map[string]any{"host-resolver-rules": "MAP *.sandpit.test 127.0.0.1, MAP sandpit.test 127.0.0.1, " + noWayOut, "ignore-certificate-errors": true}
		console := signed(t, near, secure, s.token)
		id, link, _ := runHostile(t, s)
		to, err := url.Parse(link)
		if err != nil || !strings.HasSuffix(to.Hostname(), ".sandpit.test") {
			t.Fatalf("the link is %s, %v", link, err)
		}
		to.Scheme, to.Host = "https", fmt.Sprintf("%s:%d", to.Hostname(), port)
		console.reads("hostile")
		page := console.beside(to.String())
		page.until("the preview is there", "window.tried && location.protocol === 'https:' && location.hostname.endsWith('.sandpit.test')")
		attacked(t, s, console, page, secure, id, true)
	})
	t.Run("ByPath", func(t *testing.T) {
		s := serve(t, "preview: {domain: none}\n")
		console := signed(t, p, s.url, s.token)
		id, _, link := runHostile(t, s)
		console.reads("hostile")
		page := console.beside(link)
		page.until("the preview is there", "window.tried && window.origin === 'null'")
		attacked(t, s, console, page, s.url, id, false)

		t.Run("OfAnotherPort", func(t *testing.T) {
			elsewhere := site(t)
			attacked(t, s, console, console.beside(elsewhere.URL), s.url, id, false)
		})
		t.Run("OfAnotherOrigin", func(t *testing.T) {
			elsewhere := site(t)
			attacked(t, s, console, console.beside(strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)), s.url, id, false)
		})
		t.Run("AnAddressWithATokenSignsNobodyIn", func(t *testing.T) {
			two := visit(t, p, s.url+"/console/")
			for _, address := range []string{"/console/?token=", "/console/#token=", "/console/?sandpit_token=", "/console/sandboxes?access_token=", "/console/?code=", "/console/#code="} {
				if err := browser.Visit(two.tab, "about:blank"); err != nil {
					t.Fatal(err)
				}
				if err := browser.Visit(two.tab, s.url+address+s.token); err != nil {
					t.Fatal(err)
				}
				two.reads("No token at hand?")
				if strings.Contains(address, "#") {
					if got := await[string](t, two.tab, "location.href"); strings.Contains(got, s.token) {
						t.Errorf("the token stays in the address %s", got)
					}
				}
			}
		})
		t.Run("AnOldCookieIsNoSession", func(t *testing.T) {
			stolen := console.cookie(t)
			thief := visit(t, p, s.url+"/console/")
			thief.reads("No token at hand?")
			thief.take()
			// While it is good the cookie alone is the session; that is what makes the rest of this mean something.
			thief.wears(t, s.url, stolen)
			thief.reads("hostile")
			console.presses("Sign out")
			console.reads("No token at hand?")
			thief.reads("No token at hand?")
			thief.wears(t, s.url, stolen)
			thief.reads("No token at hand?")
			// So with a token that is revoked.
			token := secretIn(t, s.do(t, "token", "create", "--name", "visitor", "--scope", "sandboxes:read"))
			visitor := signed(t, p, s.url, token)
			stolen = visitor.cookie(t)
			s.do(t, "token", "rm", "visitor")
			visitor.reads("No token at hand?")
			thief.wears(t, s.url, stolen)
			thief.reads("No token at hand?")
			if got := await[int](t, thief.tab, `fetch("/v1/whoami").then(r => r.status)`); got != 401 {
				t.Errorf("the thief is answered %d", got)
			}
		})
	})
}

// cookie is the session's, which no script can read.
func (p *person) cookie(t *testing.T) string {
	t.Helper()
	all, err := chromedp.Call(p.tab, network.GetCookies, network.GetCookiesParams{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all.Cookies {
		if c.Name == "__Host-sandpit" {
			if !c.HTTPOnly || !c.Secure || c.SameSite != network.CookieSameSiteStrict || c.Path != "/" {
				t.Errorf("the cookie is %+v", c)
			}
			return c.Value
		}
	}
	t.Fatalf("there is no session's cookie: %+v", all.Cookies)
	return ""
}

// wears puts a cookie into the browser, and loads the page with it.
func (p *person) wears(t *testing.T, address, cookie string) {
	t.Helper()
	_, err := chromedp.Call(p.tab, network.SetCookie, network.SetCookieParams{
		Name: "__Host-sandpit", Value: cookie, URL: strings.Replace(address, "http:", "https:", 1) + "/", Path: "/", Secure: new(true), HTTPOnly: new(true), SameSite: network.CookieSameSiteStrict,
	})
	if err == nil {
		err = browser.Visit(p.tab, address+"/console/sandboxes")
	}
	if err != nil {
		t.Fatal(err)
	}
	p.take()
}

// secretIn is the token that a command made and printed.
func secretIn(t *testing.T, said string) string {
	t.Helper()
	for word := range strings.FieldsSeq(said) {
		if strings.HasPrefix(word, "spt_") {
			return word
		}
	}
	t.Fatalf("there is no token in %q", said)
	return ""
}

// freePort is one that nobody listens at.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().(*net.TCPAddr).Port
}
