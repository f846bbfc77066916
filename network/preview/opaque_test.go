// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// hostile is a program that answers with every header by which it could become more than a page without an origin.
func hostile(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src *; sandbox allow-same-origin allow-scripts")
	h.Set("Service-Worker-Allowed", "/")
	h.Set("Access-Control-Allow-Origin", "http://evil.example")
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "unsafe-url")
	h.Add("Set-Cookie", "a=1; Path=/")
	mirror(w, r)
}

// inPath is a preview by path with a link's token in it.
func inPath(token string) string { return "/preview/" + token }

func TestAPageByPathHasNoOrigin(t *testing.T) {
	h := openAt(t, "", hostile)
	link := h.link(web, 8000)
	for what, a := range map[string]answer{
		"by a token of the API": h.get(h.addr, pathOf(web)+"/", "Authorization", "Bearer "+owner),
		"by a link":             h.get(h.addr, pathOf(web)+"/x?sandpit_token="+link),
		"by a link in the path": h.get(h.addr, inPath(link)+"/"),
	} {
		a.want(t, 200)
		policies := a.Header["Content-Security-Policy"]
		last := policies[len(policies)-1]
		if len(policies) != 2 || !strings.HasPrefix(last, "sandbox ") || strings.Contains(last, "same-origin") || strings.Contains(last, "escape") || !strings.Contains(last, "allow-scripts") {
			t.Errorf("%s: its policies are %q", what, policies)
		}
		if a.Header.Get("Service-Worker-Allowed") != "" {
			t.Errorf("%s: a service worker is allowed", what)
		}
	}
	for what, headers := range map[string][]string{
		"a service worker":          {"Service-Worker", "script", "Sec-Fetch-Dest", "serviceworker"},
		"one by a token of the API": {"Service-Worker", "script", "Authorization", "Bearer " + owner},
		"one that is spelled oddly": {"service-worker", " Script"},
	} {
		for _, path := range []string{pathOf(web), inPath(link)} {
			a := h.get(h.addr, path+"/sw.js", headers...)
			if a.StatusCode != 403 || !strings.Contains(a.body, "no service worker") {
				t.Errorf("%s: got %d %s", what, a.StatusCode, a.body)
			}
		}
	}
	byHost := open(t, hostile)
	if a := byHost.get(byHost.hostOf(web), "/sw.js", "Service-Worker", "script", "Authorization", "Bearer "+owner).want(t, 200); len(a.Header["Content-Security-Policy"]) != 1 || a.Header.Get("Service-Worker-Allowed") != "/" {
		t.Errorf("by host name a page keeps its origin: got %v", a.Header)
	}
}

func TestALinkInThePathLetsIn(t *testing.T) {
	h := openAt(t, "", mirror)
	link := h.link(web, 8000)
	s := h.get(h.addr, inPath(link)+"/a%2Fb?x=1").want(t, 200).seen(t)
	if s.URI != "/a%2Fb?x=1" || s.Header.Get("X-Forwarded-Prefix") != inPath(link) {
		t.Errorf("the program sees %s and %v", s.URI, s.Header)
	}
	if got := h.get(h.addr, inPath(link), "Accept", "text/html").want(t, 302).Header.Get("Location"); got != "http://"+h.addr+inPath(link)+"/" {
		t.Errorf("without a slash it is sent to %s", got)
	}
	for what, token := range map[string]string{
		"another port":    strings.Replace(link, ".8000.", ".8001.", 1),
		"another sandbox": strings.Replace(link, web, other, 1),
		"a longer life":   strings.Replace(link, ".18", ".98", 1),
		"no mac":          link[:strings.LastIndexByte(link, '.')],
		"a part too many": strings.Replace(link, ".thelink.", ".the.link.", 1),
		"a cookie's":      strings.Replace(link, "spp_l", "spp_c", 1),
		"nothing":         "spp_",
		"too long":        link + strings.Repeat("A", 600),
		"escaped":         strings.Replace(link, "spp_l", "spp_%6c", 1),
	} {
		if a := h.get(h.addr, inPath(token)+"/"); a.StatusCode != 401 && a.StatusCode != 404 {
			t.Errorf("%s: got %d %s", what, a.StatusCode, a.body)
		}
	}
	if n := h.dialed(); n != 1 {
		t.Errorf("the program was asked by %d connections", n)
	}
	// A cookie of a browser's, for what it saw by host name before, is none by path.
	if a := h.get(h.addr, pathOf(web)+"/", "Cookie", "sandpit_preview="+strings.Replace(link, "spp_l", "spp_c", 1), "Sec-Fetch-Site", "none").want(t, 401); a.body == "" {
		t.Error("it is not said why")
	}
	h.advance(time.Hour)
	if a := h.get(h.addr, inPath(link)+"/").want(t, 401); !strings.Contains(a.body, "expired at") {
		t.Errorf("got %s", a.body)
	}
}

func TestAPageWithoutAnOriginReachesItsProgram(t *testing.T) {
	h := openAt(t, "", hostile)
	link := h.link(web, 8000)
	page := []string{"Origin", "null", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}

	a := h.do("POST", h.addr, inPath(link)+"/api", strings.NewReader("{}"), append(page, "Content-Type", "application/json", "Authorization", "Bearer "+owner)...).want(t, 200)
	s := a.seen(t)
	if s.Header.Get("Origin") != "http://"+h.addr || s.Header.Get("Sec-Fetch-Site") != "same-origin" || s.Header.Get("Authorization") != "" || s.Body != "{}" {
		t.Errorf("the program sees %+v", s)
	}
	if got := a.Header["Access-Control-Allow-Origin"]; len(got) != 1 || got[0] != "*" {
		t.Errorf("its page may not read it: %q", got)
	}
	for _, name := range []string{"Access-Control-Allow-Credentials", "Cross-Origin-Resource-Policy", "Set-Cookie"} {
		if a.Header.Get(name) != "" {
			t.Errorf("%s is passed on", name)
		}
	}
	if got := a.Header.Get("Referrer-Policy"); got != "same-origin" {
		t.Errorf("the link is told by the policy %q", got)
	}

	before := h.dialed()
	asked := append(page, "Access-Control-Request-Method", "PATCH", "Access-Control-Request-Headers", "content-type,x-own")
	a = h.do("OPTIONS", h.addr, inPath(link)+"/api", nil, asked...).want(t, 204)
	if a.Header.Get("Access-Control-Allow-Methods") != "PATCH" || a.Header.Get("Access-Control-Allow-Headers") != "content-type,x-own" || h.dialed() != before {
		t.Errorf("got %v, and the program was asked %d times", a.Header, h.dialed()-before)
	}
	h.do("OPTIONS", h.addr, inPath(strings.Replace(link, ".8000.", ".8001.", 1))+"/", nil, asked...).want(t, 401)
	// What went wrong can be read, too.
	if a := h.get(h.addr, inPath(h.link(web, 8001))+"/api", page...).want(t, 502); a.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("its page may not read the error: %v", a.Header)
	}
	// A page elsewhere that does not know the link gets nothing by this.
	h.do("OPTIONS", h.addr, pathOf(web)+"/", nil, asked...).want(t, 401)
}

func TestAPageWithoutAnOriginHasWebSockets(t *testing.T) {
	h := openAt(t, "", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil) // which compares Origin with Host
		if err != nil {
			return
		}
		defer c.CloseNow()
		_ = c.Write(r.Context(), websocket.MessageText, []byte("hello"))
	})
	c, _, err := websocket.Dial(t.Context(), "ws://"+h.addr+inPath(h.link(web, 8000))+"/live", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"null"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if _, text, err := c.Read(t.Context()); err != nil || string(text) != "hello" {
		t.Errorf("got %q, %v", text, err)
	}
}
