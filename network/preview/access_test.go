// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandpit.dev/network/preview"
)

func TestAPreviewIsPrivate(t *testing.T) {
	h := open(t, mirror)
	forms := map[string]func(id, path string) (host, to string){
		"ByHost": func(id, path string) (string, string) { return h.hostOf(id), path },
		"ByPath": func(id, path string) (string, string) { return h.addr, pathOf(id) + path },
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				what    string
				id      string
				query   string
				headers []string
				status  int
			}{
				{"nothing", web, "", nil, 401},
				{"a link", web, h.link(web, 8000), nil, 200},
				{"a link as a header", web, "", []string{"X-Sandpit-Token", h.link(web, 8000)}, 200},
				{"a link as a bearer token", web, "", []string{"Authorization", "Bearer " + h.link(web, 8000)}, 200},
				{"another sandbox's link", web, h.link(other, 8000), nil, 401},
				{"another port's link", web, h.link(web, 8001), nil, 401},
				{"another project's link", web, h.link(alien, 8000), nil, 401},
				{"a token", web, "", []string{"X-Sandpit-Token", owner}, 200},
				{"a bearer token", web, "", []string{"Authorization", "Bearer " + owner}, 200},
				{"a bearer token, spelled otherwise", web, "", []string{"Authorization", "bearer  " + owner}, 200},
				{"two bearer tokens", web, "", []string{"Authorization", "Bearer " + owner, "Authorization", "Bearer " + owner}, 401},
				{"a token that may only look", web, "", []string{"X-Sandpit-Token", reader}, 403},
				{"another project's token", web, "", []string{"X-Sandpit-Token", mallet}, 404},
				{"a token that is none", web, "", []string{"X-Sandpit-Token", "spt_none"}, 401},
				{"a very long token", web, "", []string{"X-Sandpit-Token", strings.Repeat("a", 5000)}, 401},
				{"a very long link", web, "spp_" + strings.Repeat("a", 5000), nil, 401},
				{"a cookie that is a link", web, "", []string{"Cookie", "sandpit_preview=" + h.link(web, 8000)}, 401},
				{"a cookie that is a token", web, "", []string{"Cookie", "sandpit_preview=" + owner}, 401},
				{"a bad link beside a good token", web, "spp_none", []string{"Authorization", "Bearer " + owner}, 200},
				{"a sandbox that is not there", "dddddddddddddddd", "", []string{"X-Sandpit-Token", owner}, 404},
			} {
				// What one caller opened must open nothing for the next, whose
				// request could take the same connection to the program.
				host, path := form(c.id, "/")
				if c.query != "" {
					path += "?sandpit_token=" + url.QueryEscape(c.query)
				}
				if a := h.get(host, path, c.headers...); a.StatusCode != c.status {
					t.Errorf("%s: got %d %s, want %d", c.what, a.StatusCode, a.body, c.status)
				}
			}
		})
	}
}

func TestGuessesOfTokensAreTold(t *testing.T) {
	guesses := 0
	h := open(t, func(w http.ResponseWriter, _ *http.Request) {}, func(o *preview.Options) {
		o.Guessed = func(_ http.ResponseWriter, _ *http.Request, err error) error { guesses++; return err }
	})
	path := pathOf(web) + "/"
	link := h.link(web, 8000)
	for _, c := range []struct {
		name    string
		headers []string
		status  int
		guesses int
	}{
		{"NoToken", nil, 401, 0},
		{"ABearerToken", []string{"Authorization", "Bearer spt_guess"}, 401, 1},
		{"OurHeader", []string{"X-Sandpit-Token", "guess"}, 401, 1},
		{"AnExpiredCookie", []string{"Cookie", "sandpit_preview=spp_old"}, 401, 0},
		{"ABrokenLink", []string{"X-Sandpit-Token", "spp_old"}, 401, 0},
		{"ATokenForTheProgramBesideALink", []string{"Authorization", "Bearer its-own", "X-Sandpit-Token", link}, 200, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			guesses = 0
			h.get(h.addr, path, c.headers...).want(t, c.status)
			if guesses != c.guesses {
				t.Errorf("%d guesses were told, want %d", guesses, c.guesses)
			}
		})
	}
}

func TestATokenOfTheAPIIsNoPartOfAnAddress(t *testing.T) {
	h := open(t, mirror)
	cookie := h.browse(h.hostOf(web), "/?sandpit_token="+h.link(web, 8000)).Value
	navigate := []string{"Accept", "text/html", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "none"}
	for what, headers := range map[string][]string{
		"alone":             nil,
		"in a browser":      navigate,
		"beside a cookie":   append(navigate[:len(navigate):len(navigate)], "Cookie", "sandpit_preview="+cookie),
		"beside the header": {"X-Sandpit-Token", owner},
	} {
		for _, form := range [][2]string{{h.hostOf(web), "/"}, {h.addr, pathOf(web) + "/"}} {
			for _, token := range []string{owner, admin} {
				a := h.get(form[0], form[1]+"?%73andpit_token="+token, headers...).want(t, 401)
				if strings.Contains(a.body, token) || len(a.Cookies()) > 0 || a.Header.Get("Location") != "" {
					t.Errorf("%s at %s: got %s %v", what, form[0], a.body, a.Header)
				}
			}
		}
	}
	if n := h.dialed(); n != 0 {
		t.Errorf("the program was asked %d times", n)
	}
}

func TestForgedLinksAreRefused(t *testing.T) {
	h := open(t, mirror)
	good := h.link(web, 8000)
	for what, token := range map[string]string{
		"cut":              good[:len(good)-1],
		"longer":           good + "A",
		"of another port":  strings.Replace(good, ".8000.", ".8001.", 1),
		"good for longer":  strings.Replace(good, ".1800003600.", ".9800003600.", 1),
		"another project":  strings.Replace(good, ".default.", ".strange.", 1),
		"another kind":     strings.Replace(good, "spp_l", "spp_c", 1),
		"without a mac":    good[:strings.LastIndexByte(good, '.')+1],
		"without anything": "spp_",
		"another key": func() string {
			l, err := preview.NewLinks(make([]byte, preview.KeySize), "localhost")
			if err != nil {
				t.Fatal(err)
			}
			return l.Token(preview.Grant{Project: "default", Sandbox: web, Port: 8000, Expires: time.Unix(9_000_000_000, 0)})
		}(),
	} {
		if token == good {
			t.Fatalf("%s: the token was not changed", what)
		}
		if a := h.get(h.hostOf(web), "/?sandpit_token="+url.QueryEscape(token)); a.StatusCode != 401 {
			t.Errorf("%s: got %d", what, a.StatusCode)
		}
	}
	h.advance(time.Hour - time.Second)
	h.get(h.hostOf(web), "/?sandpit_token="+good).want(t, 200)
	h.advance(time.Second)
	a := h.get(h.hostOf(web), "/?sandpit_token="+good).want(t, 401)
	if !strings.Contains(a.body, "expired at 2027") {
		t.Errorf("got %s", a.body)
	}
	if _, err := preview.NewLinks([]byte("short"), ""); err == nil {
		t.Error("a short key is taken")
	}
}

// browse opens a link as a browser does, and returns the cookie that it got.
func (h *house) browse(host, path string) *http.Cookie {
	h.t.Helper()
	a := h.get(host, path, "Accept", "text/html", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "none")
	cookies := a.Cookies()
	if a.StatusCode != 302 || len(cookies) != 1 {
		h.t.Fatalf("got %d, %v, %s", a.StatusCode, cookies, a.body)
	}
	if location := a.Header.Get("Location"); strings.Contains(location, "sandpit_token") {
		h.t.Errorf("the token stays in the address: %s", location)
	}
	return cookies[0]
}

func TestABrowserGetsACookie(t *testing.T) {
	h := open(t, mirror)
	c := h.browse(h.hostOf(web), "/a/b?x=1&sandpit_token="+h.link(web, 8000)+"&y=%202")
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 3600 || c.Secure {
		t.Errorf("got %+v", c)
	}
	own := []string{"Cookie", "a=1; sandpit_preview=" + c.Value + "; b=2"}
	with := func(headers ...string) []string { return append(own[:len(own):len(own)], headers...) }

	t.Run("ThatWorks", func(t *testing.T) {
		s := h.get(h.hostOf(web), "/app.js", with("Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "no-cors")...).want(t, 200).seen(t)
		if got := s.Header.Get("Cookie"); got != "a=1; b=2" {
			t.Errorf("the program sees the cookies %q", got)
		}
		h.do("POST", h.hostOf(web), "/form", strings.NewReader("x"), with("Origin", "http://"+h.hostOf(web))...).want(t, 200)
		// So do forms of a page that sends no referrer.
		h.do("POST", h.hostOf(web), "/form", strings.NewReader("x"), with("Origin", "null", "Sec-Fetch-Site", "same-origin")...).want(t, 200)
	})
	t.Run("ForThatPreviewAlone", func(t *testing.T) {
		h.get(h.hostOf(other), "/", own...).want(t, 401)
		h.get("8001-"+web+".localhost", "/", own...).want(t, 401)
	})
	t.Run("AndForNoPageElsewhere", func(t *testing.T) {
		for _, headers := range [][]string{
			{"Origin", "http://evil.example"},
			{"Origin", "null"},
			{"Origin", "null", "Sec-Fetch-Site", "none"},
			{"Origin", "null", "Sec-Fetch-Site", "same-site"},
			{"Origin", "null", "Origin", "null", "Sec-Fetch-Site", "same-origin"},
			{"Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"},
			{"Origin", "http://" + h.hostOf(other)},
			{"Origin", "http://localhost"},
			{"Origin", "http://" + h.hostOf(web), "Origin", "http://evil.example"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"},
			{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"},
			{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		} {
			if a := h.get(h.hostOf(web), "/", with(headers...)...); a.StatusCode != 403 {
				t.Errorf("%v: got %d %s", headers, a.StatusCode, a.body)
			}
		}
		h.do("POST", h.hostOf(web), "/", nil, with("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")...).want(t, 403)
		// A link on another page is followed because its user wants to.
		h.get(h.hostOf(web), "/", with("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")...).want(t, 200)
	})
	t.Run("NoLongerThanTheLink", func(t *testing.T) {
		h.advance(59 * time.Minute)
		h.get(h.hostOf(web), "/", with("Sec-Fetch-Site", "none")...).want(t, 200)
		h.advance(time.Minute)
		h.get(h.hostOf(web), "/", own...).want(t, 401)
	})
}

// Browsers send no Sec-Fetch-Site to plain http, but for localhost.
func TestPreviewsOverPlainHTTPAreClosedToEachOther(t *testing.T) {
	h := openAt(t, "prev.example.org", func(w http.ResponseWriter, r *http.Request) {
		if policy := r.URL.Query().Get("corp"); policy != "" {
			w.Header().Set("Cross-Origin-Resource-Policy", policy)
		}
		if policy := r.URL.Query().Get("referrer"); policy != "" {
			w.Header().Set("Referrer-Policy", policy)
		}
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		mirror(w, r)
	})
	host := func(id string) string { return "8000-" + id + ".prev.example.org" }
	page := []string{"Accept", "text/html", "Upgrade-Insecure-Requests", "1"}
	opened := h.get(host(web), "/?sandpit_token="+h.link(web, 8000), page...).want(t, 302)
	cookie := []string{"Cookie", "sandpit_preview=" + opened.Cookies()[0].Value}
	with := func(headers ...string) []string { return append(cookie[:2:2], headers...) }
	own, evil := "http://"+host(web)+"/app?x=1", "http://"+host(other)+"/app"

	for what, headers := range map[string][]string{
		"a script":                      {"Referer", evil},
		"its origin alone":              {"Referer", "http://" + host(other) + "/"},
		"another site":                  {"Referer", "http://evil.example/" + host(web)},
		"a port of the same name":       {"Referer", "http://" + host(web) + ":81/"},
		"a user of that name":           {"Referer", "http://" + host(web) + "@evil.example/"},
		"two":                           {"Referer", own, "Referer", evil},
		"none, as its page wishes":      nil,
		"one that is empty":             {"Referer", ""},
		"one that asks for a page":      {"Referer", evil, "Accept", "text/html"},
		"one that asks to be upgraded":  {"Referer", evil, "Connection", "Upgrade", "Upgrade", "websocket"},
		"an origin beside its referrer": {"Referer", own, "Origin", "http://" + host(other)},
	} {
		if a := h.get(host(web), "/", with(headers...)...); a.StatusCode != 403 {
			t.Errorf("%s: got %d", what, a.StatusCode)
		}
	}
	h.do("POST", host(web), "/", nil, with("Referer", evil, "Upgrade-Insecure-Requests", "1")...).want(t, 403)
	if n := h.dialed(); n != 0 {
		t.Errorf("the program was asked %d times", n)
	}
	for what, headers := range map[string][]string{
		"its own page's script":   {"Referer", own},
		"its own page's request":  {"Origin", "http://" + host(web)},
		"an address that is read": page,
		"a link on another page":  append(page[:4:4], "Referer", evil),
	} {
		a := h.get(host(web), "/", with(headers...)...).want(t, 200)
		if got := a.Header.Get("Cross-Origin-Resource-Policy"); got != "same-origin" {
			t.Errorf("%s: resources are for %q", what, got)
		}
		if got := a.Header["Content-Security-Policy"]; len(got) != 2 || got[0] != "default-src 'self'" || got[1] != "frame-ancestors 'self'" {
			t.Errorf("%s: content %q", what, got)
		}
	}
	for policy, want := range map[string]string{
		"": "", "no-referrer": "same-origin", "origin, No-Referrer": "same-origin", "no-referrer, origin": "no-referrer, origin", "no-referrer-when-downgrade": "no-referrer-when-downgrade",
	} {
		a := h.get(host(web), "/?referrer="+url.QueryEscape(policy), with("Referer", own)...).want(t, 200)
		if got := a.Header.Get("Referrer-Policy"); got != want {
			t.Errorf("the program's %q becomes %q", policy, got)
		}
	}
	// What the program decides itself stays, and so does what a link is made for.
	a := h.get(host(web), "/?corp=cross-origin", with("Referer", own)...).want(t, 200)
	if got := a.Header["Cross-Origin-Resource-Policy"]; len(got) != 1 || got[0] != "cross-origin" {
		t.Errorf("the program's own policy becomes %q", got)
	}
	a = h.get(host(web), "/image?sandpit_token="+h.link(web, 8000), "Referer", evil, "Accept", "image/*").want(t, 200)
	if a.Header.Get("Cross-Origin-Resource-Policy") != "" || len(a.Header["Content-Security-Policy"]) != 1 {
		t.Errorf("by a link: got %v", a.Header)
	}
	// Over https the browser says which page it is.
	a = h.get(host(web), "/", with("Sec-Fetch-Site", "same-origin")...).want(t, 200)
	if a.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" || len(a.Header["Content-Security-Policy"]) != 1 {
		t.Errorf("over https: got %v", a.Header)
	}
}

func TestABrowserIsSentToTheOwnOrigin(t *testing.T) {
	h := open(t, mirror)
	navigate := []string{"Accept", "text/html", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	a := h.get(h.addr, pathOf(web)+"/a%2Fb?x=1", navigate...).want(t, 302)
	if got, want := a.Header.Get("Location"), "http://"+h.hostOf(web)+"/a%2Fb?x=1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// A visitor by another name cannot use localhost.
	link := h.link(web, 8000)
	a = h.get("box.example.org", pathOf(web)+"/a%2Fb?x=1&sandpit_token="+link, navigate...).want(t, 302)
	if got, want := a.Header.Get("Location"), "http://box.example.org/preview/"+link+"/a%2Fb?x=1"; got != want || len(a.Cookies()) > 0 {
		t.Errorf("got %s and %v, want %s", got, a.Cookies(), want)
	}
	// One by a link in the path is sent on where its host can be reached, with the link.
	a = h.get(h.addr, "/preview/"+link+"/a?x=1", navigate...).want(t, 302)
	if got, want := a.Header.Get("Location"), "http://"+h.hostOf(web)+"/a?x=1&sandpit_token="+link; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a = h.get("box.example.org", pathOf(web), navigate...).want(t, 302)
	if got, want := a.Header.Get("Location"), "http://box.example.org"+pathOf(web)+"/"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	none := openAt(t, "", mirror)
	none.get(none.addr, pathOf(web)+"/", append(navigate, "Authorization", "Bearer "+owner)...).want(t, 200)
	if none.proxy.IsHost(none.hostOf(web)) {
		t.Error("a host of previews without a domain")
	}
}

func TestARedirectLeadsNowhereElse(t *testing.T) {
	h := open(t, mirror)
	resp := h.raw("GET //evil.example/x?sandpit_token=" + h.link(web, 8000) + " HTTP/1.1\r\nHost: " + h.hostOf(web) + "\r\nAccept: text/html\r\n\r\n")
	if got := resp.Header.Get("Location"); resp.StatusCode != 302 || got != "http://"+h.hostOf(web)+"//evil.example/x" {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
}

func TestALinksFirstUseIsTold(t *testing.T) {
	h := open(t, mirror)
	for range 3 {
		h.get(h.hostOf(web), "/?sandpit_token="+h.link(web, 8000)).want(t, 200)
	}
	h.get(h.hostOf(web), "/", "X-Sandpit-Token", owner).want(t, 200)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.opened) != 1 || h.opened[0] != "thelink" {
		t.Errorf("got %v", h.opened)
	}
}
