// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
)

// signedIn is a checker of cookies.
type signedIn struct{}

func (signedIn) Admit(_ context.Context, cookie string) (access.Caller, context.Context, func(), error) {
	if cookie != "spc_good" {
		return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "the session has ended")
	}
	return access.Caller{Project: "default", Actor: "ci", Session: "s1"}, context.Background(), func() {}, nil
}

// noTokens takes the token "good" alone.
type noTokens struct{}

func (noTokens) Admit(_ context.Context, token string) (access.Caller, context.Context, func(), error) {
	if token != "good" {
		return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "the token is not valid")
	}
	return access.Caller{Project: "default", Actor: "token"}, context.Background(), func() {}, nil
}

func TestASessionIsForScriptsOfTheServersOwnPages(t *testing.T) {
	g, err := guard.New(guard.Options{Tokens: noTokens{}, Sessions: signedIn{}, Origins: []string{"https://pages.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	h := g.Through(guard.Door{Via: "rest", Credentials: []guard.Credential{guard.Bearer(), guard.InSession("/v1/")}}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := guard.Caller(r.Context())
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Actor", c.Actor+" "+c.Via)
	}))
	const own = "http://localhost:8080"
	cookie := []string{"Cookie", "a=1; __Host-sandpit=spc_good"}
	script := []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}
	with := func(more ...string) []string { return append(append(cookie[:2:2], script...), more...) }
	for what, c := range map[string]struct {
		method, path string
		headers      []string
		status       int
		actor        string
	}{
		"a read by fetch":                   {"GET", "/v1/sandboxes", with(), 200, "ci console"},
		"one whose browser says its origin": {"GET", "/v1/sandboxes", append(cookie[:2:2], "Origin", own), 200, "ci console"},
		"a write":                           {"POST", "/v1/sandboxes", with("Origin", own, "Content-Type", "application/json; charset=utf-8"), 200, "ci console"},
		"an upload":                         {"PUT", "/v1/sandboxes/x/files/y", with("Origin", own, "Content-Type", "application/octet-stream"), 200, "ci console"},
		"a delete":                          {"DELETE", "/v1/sandboxes/x", with("Origin", own), 200, "ci console"},
		"a WebSocket":                       {"GET", "/v1/sandboxes/x/terminal", append(cookie[:2:2], "Origin", own, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "websocket"), 200, "ci console"},
		"beside a token the token counts":   {"GET", "/v1/sandboxes", append(cookie[:2:2], "Authorization", "Bearer good"), 200, "token rest"},

		"no cookie":                    {"GET", "/v1/sandboxes", script, 401, ""},
		"a cookie that is over":        {"GET", "/v1/sandboxes", append([]string{"Cookie", "__Host-sandpit=spc_old"}, script...), 401, ""},
		"a token as a cookie":          {"GET", "/v1/sandboxes", append([]string{"Cookie", "__Host-sandpit=good"}, script...), 401, ""},
		"two cookies":                  {"GET", "/v1/sandboxes", with("Cookie", "__Host-sandpit=spc_good"), 401, ""},
		"a bad token beside it":        {"GET", "/v1/sandboxes", with("Authorization", "Bearer bad"), 401, ""},
		"another spelling of its name": {"GET", "/v1/sandboxes", append([]string{"Cookie", "__host-sandpit=spc_good"}, script...), 401, ""},
		"the other base":               {"GET", "/api/v1/sandboxes", with(), 401, ""},
		"MCP":                          {"POST", "/mcp", with("Origin", own, "Content-Type", "application/json"), 401, ""},

		"a program without a word of its origin": {"GET", "/v1/sandboxes", cookie, 403, ""},
		"a page of another site":                 {"GET", "/v1/sandboxes", append(cookie[:2:2], "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "empty"), 403, ""},
		"a preview below the same domain":        {"GET", "/v1/sandboxes", append(cookie[:2:2], "Sec-Fetch-Site", "same-site", "Sec-Fetch-Dest", "empty"), 403, ""},
		"a page of an allowed origin":            {"GET", "/v1/sandboxes", append(cookie[:2:2], "Origin", "https://pages.example.org", "Sec-Fetch-Site", "cross-site"), 403, ""},
		"another port of this host":              {"GET", "/v1/sandboxes", append(cookie[:2:2], "Origin", "http://localhost:9090", "Sec-Fetch-Site", "same-site"), 403, ""},
		"another scheme":                         {"GET", "/v1/sandboxes", append(cookie[:2:2], "Origin", "https://localhost:8080", "Sec-Fetch-Site", "same-site"), 403, ""},
		"no origin of a sandboxed page":          {"POST", "/v1/sandboxes", append(cookie[:2:2], "Origin", "null", "Content-Type", "application/json"), 403, ""},
		"an address that a person typed":         {"GET", "/v1/sandboxes/x/files/evil.html", append(cookie[:2:2], "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 403, ""},
		"a link on our page":                     {"GET", "/v1/sandboxes/x/files/evil.html", append(cookie[:2:2], "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 403, ""},
		"a script of a sandbox's":                {"GET", "/v1/sandboxes/x/files/evil.js", append(cookie[:2:2], "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "script"), 403, ""},
		"a worker of a sandbox's":                {"GET", "/v1/sandboxes/x/files/evil.js", append(cookie[:2:2], "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "serviceworker"), 403, ""},
		"a frame":                                {"GET", "/v1/sandboxes/x/files/evil.html", append(cookie[:2:2], "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "iframe"), 403, ""},
		"a WebSocket without an origin":          {"GET", "/v1/sandboxes/x/terminal", with("Connection", "Upgrade", "Upgrade", "websocket"), 403, ""},
		"a form":                                 {"POST", "/v1/sandboxes", with("Origin", own, "Content-Type", "application/x-www-form-urlencoded"), 403, ""},
		"a form with files":                      {"POST", "/v1/sandboxes", with("Origin", own, "Content-Type", "multipart/form-data; boundary=x"), 403, ""},
		"a form of text":                         {"POST", "/v1/sandboxes", with("Origin", own, "Content-Type", "text/plain"), 403, ""},
		"a write that says no kind":              {"POST", "/v1/sandboxes", with("Origin", own), 403, ""},
		"a write without a word of its origin":   {"POST", "/v1/sandboxes", append(cookie[:2:2], "Content-Type", "application/json"), 403, ""},
	} {
		r := httptest.NewRequest(c.method, own+c.path, nil)
		if strings.Contains(what, "form") {
			r = httptest.NewRequest(c.method, own+c.path, strings.NewReader("x"))
		}
		r.RemoteAddr = "127.0.0.1:1"
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Add(c.headers[i], c.headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("Actor") != c.actor {
			t.Errorf("%s: got %d by %q, want %d by %q: %s", what, w.Code, w.Header().Get("Actor"), c.status, c.actor, w.Body)
		}
		if forgets := strings.HasPrefix(w.Header().Get("Set-Cookie"), "__Host-sandpit=; Path=/; Max-Age=0"); forgets != (what == "a cookie that is over" || what == "a token as a cookie" || what == "two cookies") {
			t.Errorf("%s: the browser is told %q", what, w.Header()["Set-Cookie"])
		}
	}
}

func TestTheCookieOfASession(t *testing.T) {
	c := guard.NewCookie("spc_x", 3600e9)
	if c.Name != "__Host-sandpit" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 3600 {
		t.Errorf("got %+v", c)
	}
	for address, kept := range map[string]bool{
		"http://localhost:1/": true, "http://127.0.0.1/": true, "http://[::1]:1/": true, "https://box.example.org/": true, "http://a.localhost/": true,
		"http://box.example.org/": false, "http://10.0.0.1/": false, "http://localhost.example.org/": false,
	} {
		r := httptest.NewRequest("GET", address, nil)
		if err := guard.KeepsCookie(r); (err == nil) != kept || err != nil && fault.As(err).Remedy == "" {
			t.Errorf("%s: got %v", address, err)
		}
	}
}
