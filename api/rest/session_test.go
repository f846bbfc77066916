// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
)

// script are the headers of a request that a script of the server's own page makes.
func (h *house) script(cookie *http.Cookie) []string {
	return []string{"Origin", h.url, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Cookie", cookie.Name + "=" + cookie.Value}
}

// signIn signs in with the house's token, and returns the house as a browser has it, with its cookie.
func (h *house) signIn() (*house, *http.Cookie) {
	h.t.Helper()
	page := *h
	page.token = ""
	a := page.do("POST", "/v1/session", v1.SignIn{Token: h.token})
	if a.StatusCode != http.StatusCreated || len(a.Cookies()) != 1 {
		h.t.Fatalf("got %d %s %v", a.StatusCode, a.body, a.Cookies())
	}
	if strings.Contains(string(a.body), h.token) || strings.Contains(string(a.body), a.Cookies()[0].Value) {
		h.t.Errorf("the answer shows a secret: %s", a.body)
	}
	return &page, a.Cookies()[0]
}

func TestSigningIn(t *testing.T) {
	t.Parallel()
	h := open(t)
	ci := h.as("default", access.SandboxesRead, access.SandboxesWrite)
	page, cookie := ci.signIn()
	own := page.script(cookie)

	box := want[v1.Sandbox](page, 201, "POST", "/v1/sandboxes", object{}, own...)
	who := want[v1.Whoami](page, 200, "GET", "/v1/whoami", nil, own...)
	if len(who.Scopes) != 2 || who.TokenID == nil || who.ExpiresAt == nil {
		t.Errorf("got %+v", who)
	}
	list := want[v1.SessionList](page, 200, "GET", "/v1/sessions", nil, own...)
	if len(list.Items) != 1 || !list.Items[0].Current || list.Items[0].Actor != who.Name || list.Items[0].Address != "127.0.0.1" || list.Items[0].Agent == "" {
		t.Errorf("got %+v", list)
	}
	if all := want[v1.SessionList](h, 200, "GET", "/v1/sessions", nil); len(all.Items) != 1 || all.Items[0].Current {
		t.Errorf("the administrator sees %+v", all)
	}
	if a := page.do("GET", "/api/v1/whoami", nil, own...); a.StatusCode != 401 {
		t.Errorf("below the other base: got %d", a.StatusCode)
	}
	if a := page.do("POST", "/v1/session-codes", nil, append(own, "Content-Type", "application/json")...); a.StatusCode != 403 {
		t.Errorf("a code by a session: got %d %s", a.StatusCode, a.body)
	}

	conn, _, err := websocket.Dial(t.Context(), h.url+"/v1/sandboxes/"+box.ID+"/terminal", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {h.url}, "Cookie": {cookie.Name + "=" + cookie.Value}}})
	must(t, err)
	defer conn.CloseNow()
	if a := page.do("DELETE", "/v1/session", nil, own...); a.StatusCode != 204 || len(a.Cookies()) != 1 || a.Cookies()[0].MaxAge >= 0 {
		t.Errorf("signing out: got %d %s %v", a.StatusCode, a.body, a.Cookies())
	}
	for err == nil {
		_, _, err = conn.Read(context.WithoutCancel(t.Context()))
	}
	if websocket.CloseStatus(err) == -1 && !strings.Contains(err.Error(), io.EOF.Error()) {
		t.Errorf("its terminal ended by %v", err)
	}
	if a := page.do("GET", "/v1/whoami", nil, own...); a.StatusCode != 401 || !strings.Contains(string(a.body), "sign in again") {
		t.Errorf("after signing out: got %d %s", a.StatusCode, a.body)
	}
	if a := ci.do("DELETE", "/v1/session", nil); a.StatusCode != 409 {
		t.Errorf("signing out by a token: got %d %s", a.StatusCode, a.body)
	}
}

func TestSigningInByACode(t *testing.T) {
	t.Parallel()
	h := open(t)
	code := want[v1.SessionCode](h, 201, "POST", "/v1/session-codes", nil)
	page := *h
	page.token = ""
	a := page.do("POST", "/v1/session", v1.SignIn{Code: code.Code})
	if a.StatusCode != 201 || len(a.Cookies()) != 1 {
		t.Fatalf("got %d %s", a.StatusCode, a.body)
	}
	if who := want[v1.Whoami](&page, 200, "GET", "/v1/whoami", nil, page.script(a.Cookies()[0])...); who.Name != "admin-token" {
		t.Errorf("got %+v", who)
	}
	if a := page.do("POST", "/v1/session", v1.SignIn{Code: code.Code}); a.StatusCode != 401 || len(a.Cookies()) != 0 {
		t.Errorf("once more: got %d %s", a.StatusCode, a.body)
	}
	session := want[v1.SessionList](h, 200, "GET", "/v1/sessions", nil).Items[0]
	if a := h.do("DELETE", "/v1/sessions/"+session.ID, nil); a.StatusCode != 204 {
		t.Errorf("ending it: got %d %s", a.StatusCode, a.body)
	}
	if a := h.do("DELETE", "/v1/sessions/"+session.ID, nil); a.StatusCode != 404 {
		t.Errorf("ending it twice: got %d %s", a.StatusCode, a.body)
	}
}

func TestWhoDoesNotSignIn(t *testing.T) {
	t.Parallel()
	h := open(t)
	page := *h
	page.token = ""
	for what, c := range map[string]struct {
		body    any
		headers []string
		status  int
	}{
		"nothing":                     {v1.SignIn{}, nil, 422},
		"both":                        {v1.SignIn{Token: "a", Code: "b"}, nil, 422},
		"a token that is none":        {v1.SignIn{Token: "spt_none"}, nil, 401},
		"a page of another site":      {v1.SignIn{Token: h.token}, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		"a form":                      {"token=" + h.token, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		"a huge one":                  {v1.SignIn{Token: strings.Repeat("a", 2<<20)}, nil, 413},
		"a name that keeps no cookie": {v1.SignIn{Token: h.token}, []string{"Host", "box.example.org"}, 403},
	} {
		a := page.do("POST", "/v1/session", c.body, c.headers...)
		if a.StatusCode != c.status || len(a.Cookies()) != 0 || strings.Contains(string(a.body), h.token) {
			t.Errorf("%s: got %d %s, want %d", what, a.StatusCode, a.body, c.status)
		}
	}
	for range 25 {
		if a := page.do("POST", "/v1/session", v1.SignIn{Token: "spt_guess"}); a.StatusCode == 429 {
			return
		}
	}
	t.Error("25 guesses in a row were not slowed down")
}

func TestSignInsAreOnRecord(t *testing.T) {
	t.Parallel()
	h := open(t)
	page := *h
	page.token = ""
	h.signIn()
	page.do("POST", "/v1/session", v1.SignIn{Token: "spt_none"})
	passed := auditOf(h, "&type=call")
	if len(passed) == 0 || *passed[0].Call != "signIn" || *passed[0].Actor != "admin-token" || passed[0].Outcome != "ok" || *passed[0].Address != "127.0.0.1" {
		t.Errorf("the row of a sign-in: %+v", passed)
	}
	failed := auditOf(h, "&type=signin&project=*")
	if len(failed) != 1 || failed[0].Outcome != "denied" || *failed[0].Address != "127.0.0.1" {
		t.Errorf("the row of one that failed: %+v", failed)
	}
}

func TestNobodySignsInWithoutAConsole(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *rest.Options) { o.Sessions = nil })
	for _, c := range [][2]string{{"POST", "/v1/session"}, {"DELETE", "/v1/session"}, {"GET", "/v1/sessions"}, {"DELETE", "/v1/sessions/x"}, {"POST", "/v1/session-codes"}} {
		var body any
		if c[1] == "/v1/session" && c[0] == "POST" {
			body = v1.SignIn{Token: h.token}
		}
		if a := h.do(c[0], c[1], body); a.StatusCode != 501 || !strings.Contains(string(a.body), "console.enabled") {
			t.Errorf("%s %s: got %d %s", c[0], c[1], a.StatusCode, a.body)
		}
	}
}
